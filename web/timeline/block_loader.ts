// SPDX-License-Identifier: Apache-2.0
import {ApiError, isAbort} from '../api/api_error';
import {SpanTile} from '../model/span_tile';

import {TimelineHost} from './timeline_host';

// Streams are asked for in blocks of neighbours, so that scrolling a little asks for nothing.
export const kBlockStreams = 16;
const kActiveMax = 4;
const kPauseMs = 50;
const kRetryMs = 2000;
const kPxMax = 16384;

// The parameter `streams`; none if all are meant, because a list of 10,000 does not fit into an address.
export function streamsQuery(streams: number[], all: number): {streams?: string} {
  return streams.length >= all ? {} : {streams: streams.join(',')};
}

interface Request {
  from: number;
  to: number;
  nsPerPx: number;
  version: string;
  abort: AbortController;
}

// Asks for what is in view: three screens of time, again when less than half a screen is left on one side or the zoom
// changed too far. A request that is superseded is cancelled. Answers go into the state's TileStore.
export class BlockLoader {
  problem: ApiError|null = null;
  private readonly active = new Map<number, Request>();
  private readonly retryAt = new Map<number, number>();
  private wanted: number[] = [];
  private from = 0;
  private to = 0;
  private width = 1;
  private timer = 0;
  private closed = false;

  constructor(
      private readonly host: TimelineHost,
      private readonly onTile: {tileArrived(tile: SpanTile): void, loadingChanged(): void}) {}

  get isLoading(): boolean {
    return this.active.size > 0;
  }

  // Called each frame with the blocks in view, in order.
  want(blocks: number[], from: number, to: number, width: number): void {
    this.wanted = blocks;
    this.from = from;
    this.to = to;
    this.width = width;
    for (const [block, request] of this.active) {
      if (!blocks.includes(block) || !this.isUseful(request)) this.cancel(block, request);
    }
    if (this.timer === 0) this.timer = window.setTimeout(() => this.pump(), this.active.size === 0 ? 0 : kPauseMs);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const [block, request] of this.active) this.cancel(block, request);
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
    return ratio > 0.25 && ratio < 2 && request.from <= from && request.to >= to &&
        request.version === this.host.state.layout.version;
  }

  private inCapture(from: number, to: number): [number, number] {
    const {begin, end} = this.host.state.layout;
    return [Math.min(end, Math.max(begin, from)), Math.max(begin, Math.min(end + 1, to))];
  }

  private pump(): void {
    this.timer = 0;
    if (this.closed) return;
    const {store, layout} = this.host.state, span = this.to - this.from;
    const [from, to] = this.inCapture(this.from - span / 2, this.to + span / 2);
    if (to <= from) return;
    for (const block of this.wanted) {
      if (this.active.size >= kActiveMax) break;
      if (this.active.has(block) || (this.retryAt.get(block) ?? 0) > Date.now()) continue;
      if (!store.isSharp(block, from, to, this.nsPerPx, layout.version)) void this.load(block);
    }
  }

  private async load(block: number): Promise<void> {
    const {state, api} = this.host, span = this.to - this.from, nsPerPx = this.nsPerPx;
    const [from, to] = this.inCapture(Math.floor(this.from - span), Math.ceil(this.to + span));
    const px = Math.min(kPxMax, Math.max(1, Math.ceil((to - from) / nsPerPx)));
    const streams =
        state.layout.streams.slice(block * kBlockStreams, (block + 1) * kBlockStreams).map(stream => stream.number);
    const request: Request = {from, to, nsPerPx, version: state.layout.version, abort: new AbortController()};
    this.active.set(block, request);
    this.onTile.loadingChanged();
    try {
      const answer = await api.spans(
          state.captureId,
          {from: state.base.absolute(from), to: state.base.absolute(to), px, streams: streams.join(',')},
          request.abort.signal);
      const tile = new SpanTile(answer, state.base, state.names);
      // A capture that grew meanwhile is not asked for again because of the answer's version; its layout will be.
      state.store.add(block, tile, nsPerPx, request.version);
      this.problem = null;
      this.onTile.tileArrived(tile);
    } catch (error) {
      if (!isAbort(error)) this.fail(block, error);
    } finally {
      if (this.active.get(block) === request) this.active.delete(block);
      this.onTile.loadingChanged();
      if (this.timer === 0) this.timer = window.setTimeout(() => this.pump(), 0);
    }
  }

  private fail(block: number, error: unknown): void {
    this.problem = error instanceof ApiError ? error
                                             : new ApiError(
                                                   0, 'INTERNAL', `the answer cannot be read: ${String(error)}`,
                                                   'Reload the page; page and aggregator may differ in version.');
    this.retryAt.set(block, Date.now() + kRetryMs);
    window.setTimeout(() => {
      if (this.timer === 0 && !this.closed) this.pump();
    }, kRetryMs + 50);
  }
}
