// SPDX-License-Identifier: Apache-2.0
import {BinaryFrame} from './binary_frame';
import {NameTable} from './name_table';
import {safeText, sentences} from './safe_text';
import {parseCount, TimeBase} from './time_base';

export const kOpen = 1, kStartLost = 2, kInstant = 4, kMerged = 8, kClippedLeft = 16, kClippedRight = 32,
             kDeviceClock = 64, kNoBound = 128;

// One row of an answer. The columns are views into the answer; nothing is an object per span.
export interface TileRow {
  stream: number;
  row: number;
  name: string;
  source: string;
  order: number;
  depth: number;   // nesting levels
  exact: boolean;  // false: items with kMerged stand for several events
  events: number;  // that overlap the window
  isCounter: boolean;
  unit: string;  // of a counter
  max: number;
  start: Uint32Array;  // in the tile's unit after its begin, sorted
  duration: Uint32Array;
  count: Uint32Array;
  nameOf: Uint16Array;
  depthOf: Uint8Array;
  flags: Uint8Array;
  value: Float32Array;  // of a counter
  longest: number;      // of duration: how far before the window an item can begin that reaches into it
}

const kNone32 = new Uint32Array(0), kNone16 = new Uint16Array(0), kNone8 = new Uint8Array(0),
      kNoneF = new Float32Array(0);

// An answer of /spans: what to draw of some streams in some stretch of time.
export class SpanTile {
  readonly from: number;  // relative to the capture's begin
  readonly to: number;
  readonly unitNs: number;
  readonly version: string;
  readonly cut: string;
  readonly bytes: number;
  readonly rows: TileRow[] = [];
  readonly byStream = new Map<number, TileRow[]>();
  readonly nameNumbers: Uint32Array;  // of the answer's names in the NameTable
  readonly unreadableChunks: number;
  readonly readChunks: number;
  readonly digestedChunks: number;  // whose events come from digests, see docs/formats/view_api.md
  readonly isExact: boolean;        // no item stands for several events, and nothing was left out

  constructor(buffer: ArrayBuffer, base: TimeBase, names: NameTable) {
    const frame = new BinaryFrame(buffer);
    const header = frame.header;
    this.bytes = frame.byteLength;
    this.from = base.relative(header.from);
    this.to = base.relative(header.to);
    this.unitNs = Math.max(1, Number(header.unit_ns) || 1);
    this.version = String(header.version ?? '');
    this.cut = sentences(...[header.cut, ...list(header.warnings)].map(text => safeText(text ?? '', 300)));
    this.unreadableChunks = Number(header.unreadable_chunks) || 0;
    this.readChunks = Number(header.scanned_chunks) || 0;
    this.digestedChunks = Number(header.digested_chunks) || 0;
    const texts = list(header.names), categories = list(header.categories), categoryOf = list(header.name_category);
    this.nameNumbers = Uint32Array.from(
        texts, (text, i) => names.number(String(text), String(categories[Number(categoryOf[i])] ?? 'other')));
    for (const entry of list(header.rows)) {
      const row = this.readRow(frame, entry as Record<string, unknown>), siblings = this.byStream.get(row.stream);
      this.rows.push(row);
      if (siblings)
        siblings.push(row);
      else
        this.byStream.set(row.stream, [row]);
    }
    this.isExact = !header.cut && this.rows.every(row => row.exact);
  }

  // The number of nanoseconds that one pixel of the answer stands for is not in it; the caller knows what it asked for.
  timeOf(row: TileRow, item: number): number {
    return this.from + row.start[item] * this.unitNs;
  }

  durationOf(row: TileRow, item: number): number {
    return row.isCounter ? 0 : row.duration[item] * this.unitNs;
  }

  private readRow(frame: BinaryFrame, row: Record<string, unknown>): TileRow {
    const n = Number(row.items) || 0, isCounter = row.source === 'counter';
    const made: TileRow = {
      stream: Number(row.stream),
      row: Number(row.row),
      name: safeText(row.name, 200),
      source: String(row.source),
      order: Number(row.order) || 0,
      depth: Math.min(255, Math.max(1, Number(row.depth) || 1)),
      exact: row.mode !== 'bins',
      events: parseCount(row.events),
      isCounter,
      unit: safeText(row.unit ?? '', 20),
      max: Number(row.max) || 0,
      start: kNone32,
      duration: kNone32,
      count: kNone32,
      nameOf: kNone16,
      depthOf: kNone8,
      flags: kNone8,
      value: kNoneF,
      longest: 0,
    };
    let at = Number(row.offset) || 0;
    const take = (size: number): number => {
      const here = at;
      at = (at + n * size + 7) & ~7;
      return here;
    };
    made.start = frame.u32(take(4), n);
    if (isCounter) {
      made.value = frame.f32(take(4), n);
      return made;
    }
    made.duration = frame.u32(take(4), n);
    made.count = frame.u32(take(4), n);
    made.nameOf = frame.u16(take(2), n);
    made.depthOf = frame.u8(take(1), n);
    made.flags = frame.u8(take(1), n);
    for (let i = 0; i < n; ++i) {
      if (made.duration[i] > made.longest) made.longest = made.duration[i];
    }
    return made;
  }
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

// The first index whose start is at least `value`.
export function firstAtLeast(start: Uint32Array, value: number): number {
  let low = 0, high = start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The length of a span without the items of the next nesting level that lie in it. Relative nanoseconds.
export function selfTime(tile: SpanTile, row: TileRow, from: number, to: number, depth: number): number {
  let self = to - from;
  for (let i = firstAtLeast(row.start, (from - tile.from) / tile.unitNs); i < row.start.length; ++i) {
    const begin = tile.timeOf(row, i);
    if (begin >= to) break;
    if (row.depthOf[i] === depth + 1) self -= Math.min(to, begin + tile.durationOf(row, i)) - begin;
  }
  return Math.max(0, self);
}
