// SPDX-License-Identifier: Apache-2.0
import {ApiError, isAbort} from '../api/api_error';
import {SpanTile} from '../model/span_tile';

import {kPageTimers, Timers} from './layout_refresher';
import {TimelineState} from './timeline_state';

// Streams are asked for in blocks of neighbours, so that scrolling a little asks for nothing.
export const kBlockStreams = 16;
const kActiveMax = 4;
const kPauseMs = 50;
const kRetryMs = 2000;
const kPxMax = 16384;
// A running capture's answers cover a part of the window only until the next one arrives.
const kOverlapMin = 0.5;

// The parameter `streams`; none if all are meant, because a list of 10,000 does not fit into an address.
export function streamsQuery(streams: number[], all: number): {streams?: string} {
  return streams.length >= all ? {} : {streams: streams.join(',')};
}

// What the loader asks and tells.
export interface LoaderHost {
  readonly state: Pick<TimelineState, 'base'|'captureId'|'layout'|'names'|'store'>;
  readonly api: {spans(id: string, query: Record<string, string|number>, signal: AbortSignal): Promise<ArrayBuffer>};
}

interface Question {
  from: number;
  to: number;
  nsPerPx: number;
  version: string;
}

interface Request extends Question {
  abort: AbortController;
}

// Asks for what is in view: three screens of time, again when less than half a screen is left on one side or the zoom
// changed too far. A request is cancelled only if its answer would not be drawn: a capture that grows, or gets a new
// version, does not cancel the request under way, or an answer that takes longer than a second would never arrive while
// the capture runs. A question that was answered is not repeated within kRetryMs, whatever the answer covers. Answers
// go into the state's TileStore.
export class BlockLoader {
  problem: ApiError|null = null;
  private readonly active = new Map<number, Request>();
  private readonly retryAt = new Map<number, number>();                  // of blocks in view that failed
  private readonly answered = new Map<number, Question&{at: number}>();  // of blocks in view
  private wanted: number[] = [];
  private from = 0;
  private to = 0;
  private width = 1;
  private timer = 0;
  private closed = false;

  constructor(
      private readonly host: LoaderHost,
      private readonly onTile: {tileArrived(tile: SpanTile): void, loadingChanged(): void},
      private readonly timers: Timers = kPageTimers) {}

  get isLoading(): boolean {
    return this.active.size > 0;
  }

  // Called each frame with the blocks in view, in order. Keeps the array until the next call.
  want(blocks: number[], from: number, to: number, width: number): void {
    this.wanted = blocks;
    this.from = from;
    this.to = to;
    this.width = width;
    for (const [block, request] of this.active) {
      if (!blocks.includes(block) || !this.isUseful(request)) this.cancel(block, request);
    }
    this.schedule(this.active.size === 0 ? 0 : kPauseMs);
  }

  close(): void {
    this.closed = true;
    this.timers.clear(this.timer);
    for (const [block, request] of this.active) this.cancel(block, request);
  }

  private schedule(ms: number): void {
    if (this.timer === 0 && !this.closed) this.timer = this.timers.set(() => this.pump(), ms);
  }

  private get nsPerPx(): number {
    return (this.to - this.from) / this.width;
  }

  private cancel(block: number, request: Request): void {
    request.abort.abort();
    this.active.delete(block);
    this.onTile.loadingChanged();
  }

  private isUseful(request: Request): boolean {
    const ratio = request.nsPerPx / this.nsPerPx, [from, to] = this.inCapture(this.from, this.to);
    const overlap = Math.min(to, request.to) - Math.max(from, request.from);
    return ratio > 0.25 && ratio < 2 && overlap >= (to - from) * kOverlapMin;
  }

  private inCapture(from: number, to: number): [number, number] {
    const {begin, end} = this.host.state.layout;
    return [Math.min(end, Math.max(begin, from)), Math.max(begin, Math.min(end + 1, to))];
  }

  private pump(): void {
    this.timer = 0;
    if (this.closed) return;
    const {store, layout, base} = this.host.state, span = this.to - this.from, now = this.timers.now();
    this.forgetOthers();
    if (layout.streams.length === 0 || base.originNs === 0n) return;  // no event yet
    const [from, to] = this.inCapture(this.from - span / 2, this.to + span / 2);
    if (!(to > from)) return;
    let again = Infinity;  // ms until a block may be asked for
    for (const block of this.wanted) {
      if (this.active.size >= kActiveMax) break;
      if (this.active.has(block) || store.isSharp(block, from, to, this.nsPerPx, layout.version)) continue;
      const wait = Math.max((this.retryAt.get(block) ?? 0) - now, this.waitOfAnswered(block, now));
      if (wait > 0)
        again = Math.min(again, wait);
      else
        void this.load(block);
    }
    if (again < Infinity) this.schedule(again);
  }

  // How long the question that would be asked now has to wait, because it was answered and the answer was too little.
  private waitOfAnswered(block: number, now: number): number {
    const last = this.answered.get(block), question = this.question();
    const isSame = last && last.from === question.from && last.to === question.to &&
        last.nsPerPx === question.nsPerPx && last.version === question.version;
    return isSame ? last.at + kRetryMs - now : 0;
  }

  private forgetOthers(): void {
    for (const held of [this.retryAt, this.answered])
      for (const block of held.keys())
        if (!this.wanted.includes(block)) held.delete(block);
  }

  private question(): Question {
    const span = this.to - this.from;
    const [from, to] = this.inCapture(Math.floor(this.from - span), Math.ceil(this.to + span));
    return {from, to, nsPerPx: this.nsPerPx, version: this.host.state.layout.version};
  }

  private async load(block: number): Promise<void> {
    const {state, api} = this.host, question = this.question(), {from, to, nsPerPx} = question;
    const px = Math.min(kPxMax, Math.max(1, Math.ceil((to - from) / nsPerPx)));
    const streams =
        state.layout.streams.slice(block * kBlockStreams, (block + 1) * kBlockStreams).map(stream => stream.number);
    const request: Request = {...question, abort: new AbortController()};
    this.active.set(block, request);
    this.onTile.loadingChanged();
    try {
      const answer = await api.spans(
          state.captureId,
          {from: state.base.absolute(from), to: state.base.absolute(to), px, streams: streams.join(',')},
          request.abort.signal);
      // An answer that was under way when it was cancelled is of no use.
      if (this.active.get(block) !== request) return;
      const tile = new SpanTile(answer, state.base, state.names);
      // A capture that grew meanwhile is not asked for again because of the answer's version; its layout will be.
      state.store.add(block, tile, nsPerPx, request.version);
      this.answered.set(block, {...question, at: this.timers.now()});
      this.retryAt.delete(block);
      this.problem = null;
      this.onTile.tileArrived(tile);
    } catch (error) {
      if (!isAbort(error)) this.fail(block, error);
    } finally {
      if (this.active.get(block) === request) {
        this.active.delete(block);
        this.onTile.loadingChanged();
      }
      this.schedule(0);
    }
  }

  private fail(block: number, error: unknown): void {
    this.problem = error instanceof ApiError ? error
                                             : new ApiError(
                                                   0, 'INTERNAL', `the answer cannot be read: ${String(error)}`,
                                                   'Reload the page; page and aggregator may differ in version.');
    this.retryAt.set(block, this.timers.now() + kRetryMs);
  }
}
