// SPDX-License-Identifier: Apache-2.0
import {DrawList, FrameRow} from './draw_list';
import {NameTable} from './name_table';
import {kVariants} from './palette';
import {firstAtLeast, kInstant, kMerged, kOpen, kStartLost} from './span_tile';

export interface PassView {
  from: number;  // relative nanoseconds
  nsPerPx: number;
  width: number;  // px
  strips: number;
}

// Turns the items of an answer into the rectangles of a frame. Painter, hit test and the table of events share the
// result. Of the items that begin in one pixel, the longest is kept; what is wider than a pixel always is.
export class LayoutPass {
  private readonly lastPixel = new Int32Array(256);
  private readonly lastLength = new Float64Array(256);
  private readonly lastIndex = new Int32Array(256);

  constructor(private readonly names: NameTable) {}

  addRow(list: DrawList, frame: FrameRow, view: PassView): void {
    const {row, tile, unit, flat} = frame;
    const {start, duration, depthOf, flags, nameOf} = row, n = start.length;
    const scale = tile.unitNs / view.nsPerPx, shift = (view.from - tile.from) / view.nsPerPx;
    const from = (view.from - tile.from) / tile.unitNs, to = from + view.width * view.nsPerPx / tile.unitNs;
    const {lastPixel, lastLength, lastIndex} = this, capacity = list.begin.length, rowNumber = list.rowCount - 1;
    lastPixel.fill(-1 << 30, 0, row.depth);
    let count = list.count;
    for (let i = firstAtLeast(start, from - row.longest); i < n && count < capacity; ++i) {
      if (start[i] > to) break;
      const depth = depthOf[i] < row.depth ? depthOf[i] : row.depth - 1, strip = flat ? unit : unit + depth;
      if (strip < 0 || strip >= view.strips) continue;
      const length = duration[i];
      const begin = Math.floor(start[i] * scale - shift);
      let end = Math.floor((start[i] + length) * scale - shift);
      if (end <= begin) end = begin + 1;
      if (end <= 0 || begin >= view.width) continue;
      // In a flat strip, a level of items too small to be seen would hide the one around it that can be.
      if (flat && depth > 0 && (end - begin <= 1 || flags[i] & kMerged)) continue;
      let at = count;
      if (begin === lastPixel[depth]) {
        if (length <= lastLength[depth]) continue;
        at = lastIndex[depth];
      } else {
        ++count;
      }
      lastPixel[depth] = begin;
      lastLength[depth] = length;
      lastIndex[depth] = at;
      list.begin[at] = begin < 0 ? 0 : begin;
      list.end[at] = end > view.width ? view.width : end;
      list.strip[at] = strip;
      list.item[at] = i;
      list.row[at] = rowNumber;
      list.colour[at] = this.names.colourOf[tile.nameNumbers[nameOf[i]]] * kVariants + variantOf(flags[i]);
    }
    list.count = count;
    frame.last = count;
  }

  // The largest value of a counter in each pixel; NaN before the first value. Values hold until the next.
  fillCounter(out: Float32Array, frame: FrameRow, view: PassView): void {
    const {row, tile} = frame, {start, value} = row, n = start.length;
    const scale = tile.unitNs / view.nsPerPx, shift = (view.from - tile.from) / view.nsPerPx;
    out.fill(NaN);
    let held = NaN, pixel = 0;
    const first = Math.max(0, firstAtLeast(start, (view.from - tile.from) / tile.unitNs) - 1);
    for (let i = first; i < n; ++i) {
      const x = Math.floor(start[i] * scale - shift);
      if (x >= view.width) break;
      for (; pixel < x; ++pixel)
        if (Number.isNaN(out[pixel])) out[pixel] = held;
      held = value[i];
      if (x >= 0 && !(out[x] >= held)) out[x] = held;
    }
    const known = Math.min(view.width, Math.floor((tile.to - view.from) / view.nsPerPx));
    for (; pixel < known; ++pixel)
      if (Number.isNaN(out[pixel])) out[pixel] = held;
  }
}

function variantOf(flags: number): number {
  if (flags & (kOpen | kStartLost)) return 2;
  return flags & kMerged && !(flags & kInstant) ? 1 : 0;
}
