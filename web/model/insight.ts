// SPDX-License-Identifier: Apache-2.0
import {CaptureLayout, Stream} from './capture_layout';
import {enumText} from './certificate_sentences';
import {InsightCore, InsightMessage, RefusalMessage, VerdictMessage} from './insight_types';
import {formatCount, formatDuration} from './text_format';
import {parseCount, parseInteger, TimeBase} from './time_base';

// What a verdict's badge and marks look like. Uneven roles and data name no rank.
export type VerdictTone = 'slow'|'hang'|'uneven';

const kRanksNamed = 6;

// A verdict with its place on the timeline. Times are relative to the capture's begin.
export interface PlacedVerdict {
  message: VerdictMessage;
  kind: string;  // "slow-core"
  tone: VerdictTone;
  streams: number[];  // of the suspects that the layout has
  unplaced: number;   // suspects without a stream in the layout, or beyond the listed ones
  from: number;
  to: number;
}

export interface PlacedRefusal {
  message: RefusalMessage;
  streams: number[];
  isOfAll: boolean;  // it names no core: nothing in its window was judged
  from: number;
  to: number;
}

// A report on a stretch of a capture, matched with the streams of its layout.
export class Insight {
  readonly verdicts: PlacedVerdict[];
  readonly refusals: PlacedRefusal[];
  private readonly verdictsOf = new Map<number, PlacedVerdict[]>();
  private readonly refusalsByStream = new Map<number, PlacedRefusal[]>();

  constructor(readonly report: InsightMessage, layout: CaptureLayout, base: TimeBase) {
    const from = relativeOr(base, report.beginNs, layout.begin), to = relativeOr(base, report.endNs, layout.end);
    const finder = new StreamFinder(layout);
    this.verdicts = (report.verdicts ?? []).map(message => {
      const suspects = message.suspects ?? [], streams = finder.find(suspects), kind = verdictKind(message),
            since = relativeOr(base, message.sinceNs, from);
      return {
        message,
        kind,
        tone: toneOf(kind),
        streams,
        unplaced: Math.max(0, suspectCount(message) - streams.length),
        from: since,
        to: Math.max(since, relativeOr(base, message.untilNs, to))
      };
    });
    this.refusals = (report.refusals ?? []).map(message => {
      const begin = relativeOr(base, message.beginNs, from);
      return {
        message,
        streams: finder.find(message.cores ?? []),
        isOfAll: !message.cores?.length && !message.coresTotal,
        from: begin,
        to: Math.max(begin, relativeOr(base, message.endNs, to))
      };
    });
    for (const verdict of this.verdicts)
      for (const stream of verdict.streams) put(this.verdictsOf, stream, verdict);
    for (const refusal of this.refusals)
      for (const stream of refusal.streams) put(this.refusalsByStream, stream, refusal);
  }

  // The verdicts that name this stream, in the order of the report.
  of(stream: number): readonly PlacedVerdict[] {
    return this.verdictsOf.get(stream) ?? [];
  }

  // Why this stream was not judged, without what concerns the whole window.
  refusalsOf(stream: number): readonly PlacedRefusal[] {
    return this.refusalsByStream.get(stream) ?? [];
  }

  get refusalsOfAll(): PlacedRefusal[] {
    return this.refusals.filter(refusal => refusal.isOfAll);
  }
}

// Finds the streams of cores by rank, and by instance, process and core where the rank is unknown.
class StreamFinder {
  private readonly byRank = new Map<string, Stream[]>();
  private readonly byCore = new Map<string, Stream[]>();

  constructor(private readonly layout: CaptureLayout) {
    for (const stream of layout.streams) {
      if (stream.kind !== 'core') continue;
      if (stream.gid !== null) put(this.byRank, String(stream.gid), stream);
      put(this.byCore, coreKey(this.instanceOf(stream), stream.process, stream.core), stream);
    }
  }

  find(cores: InsightCore[]): number[] {
    const found = new Set<number>();
    for (const core of cores) {
      const gid = rankOf(core), instance = core.instanceId ?? '';
      const candidates = gid === null ? this.byCore.get(coreKey(instance, `pid ${core.pid ?? '0'}`, core.ncIdx ?? 0))
                                      : this.byRank.get(String(gid));
      // Ranks are counted in each job, and two cores may claim the same one.
      for (const stream of candidates ?? []) {
        if ((!core.job || !stream.job || core.job === stream.job) &&
            (!instance || this.instanceOf(stream) === instance))
          found.add(stream.number);
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  private instanceOf(stream: Stream): string {
    return this.layout.instances[stream.instance]?.id ?? '';
  }
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list)
    list.push(value);
  else
    map.set(key, [value]);
}

function coreKey(instance: string, process: string, core: number|null): string {
  return `${instance}\u0000${process}\u0000${core ?? ''}`;
}

// 0 and absent mean that the report has no such time.
function relativeOr(base: TimeBase, ns: string|undefined, otherwise: number): number {
  return parseInteger(ns) > 0n ? base.relative(ns) : otherwise;
}

// "VERDICT_KIND_SLOW_CORE" as "slow-core", the name that every other output has.
export function verdictKind(message: VerdictMessage): string {
  return enumText(message.kind, 'VERDICT_KIND_').replace(/ /g, '-') || 'unknown';
}

export function toneOf(kind: string): VerdictTone {
  if (/^(hang-|dead-|device-error)/.test(kind)) return 'hang';
  return kind.startsWith('uneven-') ? 'uneven' : 'slow';
}

// The rank, or null where it is unknown.
export function rankOf(core: InsightCore): number|null {
  const gid = parseCount(core.workerGid ?? '0');
  return gid >= 0 ? gid : null;
}

function suspectCount(message: VerdictMessage): number {
  return Math.max(message.suspectsTotal ?? 0, message.suspects?.length ?? 0);
}

// "gid 13", "gid 8, 9, 10 and 5 more", "i-0a nc 3".
export function coresText(cores: InsightCore[], total: number): string {
  if (!cores.length) return total > 0 ? `${formatCount(total)} cores` : '';
  const named = cores.slice(0, kRanksNamed), rest = Math.max(total, cores.length) - named.length;
  const ranks = named.filter(core => rankOf(core) !== null).map(core => String(rankOf(core)));
  const others =
      named.filter(core => rankOf(core) === null).map(core => `${core.instanceId ?? '?'} nc ${core.ncIdx ?? 0}`);
  const texts = [...(ranks.length ? [`gid ${ranks.join(', ')}`] : []), ...others].join(', ');
  return rest > 0 ? `${texts} and ${formatCount(rest)} more` : texts;
}

export function suspectsText(message: VerdictMessage): string {
  return coresText(message.suspects ?? [], suspectCount(message));
}

// The part of a step that the verdict costs, 0 to 1; NaN where either is unknown.
export function costShare(message: VerdictMessage): number {
  const cost = parseCount(message.costNs), step = parseCount(message.stepNs);
  return cost > 0 && step > 0 ? Math.min(1, cost / step) : NaN;
}

// The answer in a sentence: how many verdicts there are, or that there is nobody to name. With it, what was judged.
export function headline(report: InsightMessage): string {
  const verdicts = report.verdicts?.length ?? 0;
  if (verdicts > 0) return `${verdicts} ${verdicts === 1 ? 'verdict' : 'verdicts'}`;
  return (report.coresJudged ?? 0) > 0 ? 'Nobody to name' : 'Nothing was judged';
}

export function judgedText(report: InsightMessage): string {
  const executions = parseCount(report.executions), step = parseCount(report.stepNs);
  const texts = [`${formatCount(report.coresJudged ?? 0)} of ${formatCount(report.cores ?? 0)} cores judged`];
  if (executions > 0) texts.push(`${formatCount(executions)} executions`);
  if (step > 0) texts.push(`step ${formatDuration(step)}`);
  return texts.join(', ');
}

// How much of a step the ranks wait, and how much of that the verdicts explain; '' if nothing was judged.
export function waitText(report: InsightMessage): string {
  const exposed = parseCount(report.exposedWaitNs), explained = parseCount(report.explainedWaitNs);
  if (!report.coresJudged) return '';
  if (report.belowCost)
    return `Ranks wait ${formatDuration(exposed)} of a step for others, which is too little to look for a cause.`;
  const texts = [`Ranks wait ${formatDuration(exposed)} of a step for others`];
  if (report.verdicts?.length) texts.push(`the verdicts explain ${formatDuration(explained)} of it`);
  return `${texts.join('; ')}.`;
}

// A ratio of what was ruled out, as the command prints it: "0.99x".
export function ratioText(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}

// Whether a collective shows the verdict, and not the rank's own execution before it.
export function isShownByCollective(message: VerdictMessage): boolean {
  const kind = verdictKind(message);
  return parseInteger(message.opId) > 0n &&
      (toneOf(kind) !== 'slow' || kind === 'slow-collective' || parseInteger(message.execId) <= 0n);
}

// What shows the collective or execution that the verdict is about, as a query; '' if none is named.
export function evidenceQuery(message: VerdictMessage): string {
  const terms: string[] = [];
  if (parseInteger(message.execId) > 0n) terms.push(`arg:exec_id=${parseInteger(message.execId)}`);
  if (isShownByCollective(message)) terms.push(`arg:op_id=${parseInteger(message.opId)}`);
  return terms.join(' ');
}

// The types of the events in which a phase of an execution is seen, as in derived.md.
const kTypesOfPhase: Record<string, string[]> = {
  submit: ['nrt_execute'],
  pre: ['kbl_exec_pre'],
  device: ['nc_exec_running', 'device_exec'],
  wait: ['cc_running', 'cc_exec', 'enc_barrier', 'cc_exec_barrier'],
  transfer: ['cc_running', 'cc_exec'],
  post: ['kbl_exec_post'],
  gap: ['nrt_execute']
};

// The longest event of the phase, or of all if there is none; undefined without events.
export function eventOfPhase<E extends {type: string, duration_ns: string}>(phase: string|undefined, events: E[]): E|
    undefined {
  const types = kTypesOfPhase[phase ?? ''] ?? [], ofPhase = events.filter(({type}) => types.includes(type));
  const candidates = ofPhase.length ? ofPhase : events;
  return candidates.reduce<E|undefined>(
      (best, event) => !best || parseCount(event.duration_ns) > parseCount(best.duration_ns) ? event : best, undefined);
}

// Whether all of the window was judged: then a warning changes nothing of the answer.
export function isWhole(report: InsightMessage): boolean {
  return (report.cores ?? 0) > 0 && (report.coresJudged ?? 0) >= (report.cores ?? 0) && !report.refusals?.length;
}

// The heat map that shows a verdict best.
export function heatMetricOf(kind: string): string {
  if (kind.startsWith('hang-') || kind === 'dead-worker' || kind === 'device-error') return 'busy';
  if (kind === 'slow-collective') return 'wait';
  return kind.startsWith('uneven-') ? 'step' : 'late';
}
