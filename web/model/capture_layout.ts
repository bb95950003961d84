// SPDX-License-Identifier: Apache-2.0
import {safeText} from './safe_text';
import {parseCount, TimeBase} from './time_base';

export interface Gap {
  from: number;
  to: number;
  events: number;
  kind: 'loss'|'suspension'|'damage';
  reason: string;
}

export interface Stream {
  number: number;
  instance: number;  // index
  kind: string;
  process: string;
  job: string;
  label: string;
  gid: number|null;
  core: number|null;
  events: number;
  lost: number;
  from: number;
  to: number;
  boundNs: number;
  boundKnown: boolean;
  ownTime: boolean;
  gaps: Gap[];
}

export interface Instance {
  id: string;
  label: string;
  boundNs: number;
  boundKnown: boolean;
}

type Json = Record<string, unknown>;

// An answer of /layout: which streams there are, and what is missing from them. Times are relative to `base`.
export class CaptureLayout {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly live: boolean;
  readonly version: string;
  readonly begin: number;
  readonly end: number;
  readonly warnings: string[];
  readonly instances: Instance[];
  readonly streams: Stream[];
  readonly moments: {name: string, time: number}[];  // of the capture itself, such as when it was stopped
  private readonly indexOf = new Map<number, number>();

  constructor(json: Json, base: TimeBase) {
    const capture = (json.capture ?? {}) as Json;
    this.id = String(capture.id ?? '');
    this.name = safeText(capture.name ?? '', 200);
    this.state = String(capture.state ?? '');
    this.live = json.live === true;
    this.version = String(json.version ?? '');
    this.begin = base.relative(json.begin_ns);
    this.end = Math.max(this.begin, base.relative(json.end_ns));
    this.warnings = array(json.warnings).map(text => safeText(text, 500));
    this.instances = array(json.instances).map(entry => readInstance(entry as Json));
    this.streams = array(json.streams).map(entry => readStream(entry as Json, base));
    this.moments = array(json.markers).map(entry => {
      const {kind, ns, detail} = entry as Json;
      const name = [`capture ${safeText(kind ?? '', 40)}`, safeText(detail ?? '', 100)].filter(text => text).join(': ');
      return {name, time: base.relative(ns)};
    });
    this.streams.forEach((stream, index) => this.indexOf.set(stream.number, index));
  }

  // The index in `streams`, or -1.
  index(number: number): number {
    return this.indexOf.get(number) ?? -1;
  }

  stream(number: number): Stream|undefined {
    return this.streams[this.index(number)];
  }
}

function array(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function readInstance(json: Json): Instance {
  const id = safeText(json.id, 100);
  return {
    id,
    label: safeText(json.label || id, 100),
    boundNs: parseCount(json.bound_ns),
    boundKnown: json.bound_known === true
  };
}

function readStream(json: Json, base: TimeBase): Stream {
  return {
    number: Number(json.number),
    instance: Number(json.instance) || 0,
    kind: String(json.kind ?? 'other'),
    process: safeText(json.process ?? '', 100),
    job: safeText(json.job ?? '', 100),
    label: safeText(json.label ?? '', 200),
    gid: typeof json.gid === 'number' ? json.gid : null,
    core: typeof json.core === 'number' ? json.core : null,
    events: parseCount(json.events),
    lost: parseCount(json.lost),
    from: base.relative(json.begin_ns),
    to: base.relative(json.end_ns),
    boundNs: parseCount(json.bound_ns),
    boundKnown: json.bound_known === true,
    ownTime: json.own_time === true,
    gaps: array(json.gaps).map(gap => readGap(gap as Json, base)),
  };
}

function readGap(json: Json, base: TimeBase): Gap {
  const kind = json.kind === 'suspension' || json.kind === 'damage' ? json.kind : 'loss';
  return {
    from: base.relative(json.begin_ns),
    to: base.relative(json.end_ns),
    events: parseCount(json.events),
    kind,
    reason: [json.reason, json.detail].map(text => safeText(text ?? '', 300)).filter(text => text).join(': ')
  };
}
