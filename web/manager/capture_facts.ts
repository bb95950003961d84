// SPDX-License-Identifier: Apache-2.0
import {Capture} from '../api/api_types';
import {CaptureFilter} from '../model/capture_filter';
import {Retention} from '../model/retention';
import {formatState} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';

// The facts about a capture that the page shows, worked out from the operator service's message.
export class CaptureFacts {
  readonly id: string;
  readonly name: string;
  readonly job: string;
  readonly state: string;  // RECORDING, COMPLETE, …
  readonly startedNs: bigint;
  readonly durationNs: number;
  readonly ranks: number;
  readonly events: number;
  readonly lost: number;
  readonly lostUnknown: boolean;
  readonly bytes: number;
  readonly starred: boolean;
  readonly tags: string[];
  readonly labels: string[];  // the tags of its start, as KEY=VALUE, which cannot be changed

  constructor(readonly capture: Capture) {
    this.id = capture.captureId ?? '';
    this.name = capture.name ?? capture.spec?.name ?? '';
    this.job = capture.spec?.job ?? '';
    this.state = (capture.state ?? '').replace(/^CAPTURE_STATE_/, '') || 'UNKNOWN';
    this.startedNs = parseInteger(capture.startedRealtimeNs);
    const stopped = parseInteger(capture.stoppedRealtimeNs);
    const end = stopped > 0n ? stopped : parseInteger(capture.serverRealtimeNs) || BigInt(Date.now()) * 1000000n;
    this.durationNs = this.startedNs > 0n ? Math.max(0, Number(end - this.startedNs)) : 0;
    this.ranks = ranksOf(capture);
    this.events = parseCount(capture.events);
    this.lost = parseCount(capture.eventsLost);
    this.lostUnknown = capture.eventsLostUnknown === true;
    this.bytes = parseCount(capture.bytes);
    this.starred = capture.starred === true;
    this.tags = capture.tags ?? [];
    this.labels = (capture.spec?.labels ?? []).map(label => `${label.key ?? ''}=${label.value ?? ''}`);
  }

  get title(): string {
    return this.name || this.id;
  }

  get isLive(): boolean {
    return ['RECORDING', 'STOPPING', 'ARMING', 'RUNNING'].includes(this.state);
  }

  get retention(): Retention {
    const {spec, stoppedRealtimeNs} = this.capture;
    return {
      isContinuous: spec?.mode === 'CAPTURE_MODE_CONTINUOUS',
      isLive: this.isLive,
      retentionNs: parseInteger(spec?.retentionNs),
      stoppedNs: parseInteger(stoppedRealtimeNs)
    };
  }

  get stateText(): string {
    return formatState(this.capture.state);
  }

  get allTags(): string[] {
    return [...this.labels, ...this.tags];
  }

  matches(filter: CaptureFilter): boolean {
    const {allTags} = this;
    const text = [this.id, this.name, this.job, this.stateText, this.starred ? 'starred' : '', ...allTags].join(' ');
    return filter.matches(text, allTags);
  }
}

function ranksOf(capture: Capture): number {
  if (capture.ranks !== undefined) return Number(capture.ranks);
  const gids = new Set<string>();
  for (const worker of capture.workers ?? [])
    for (const gid of worker.workerGids ?? []) gids.add(gid);
  for (const stream of capture.streams ?? [])
    if (stream.workerGid !== undefined && stream.workerGid !== '-1') gids.add(stream.workerGid);
  for (const worker of capture.certificate?.workers ?? [])
    for (const gid of worker.workerGids ?? []) gids.add(gid);
  // The list of captures has no ranks; a worker has a stream for each of its cores.
  const cores = (capture.workers ?? []).reduce((sum, worker) => sum + (worker.streams ?? 0), 0);
  return gids.size || cores || (capture.workers?.length ?? 0);
}
