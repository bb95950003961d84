// SPDX-License-Identifier: Apache-2.0
import {SpanTile, TileRow} from './span_tile';
import {Track} from './track_tree';

// A row of an answer that is drawn in this frame, with the part of the list that it fills.
export interface FrameRow {
  track: Track;
  tile: SpanTile;
  row: TileRow;
  unit: number;   // of the screen, where the track begins; negative if its top is scrolled away
  flat: boolean;  // all nesting levels in one strip
  first: number;
  last: number;  // one past
}

// The rectangles of one frame in columns that are reused: nothing is allocated while a person pans.
export class DrawList {
  count = 0;
  begin = new Int16Array(0);  // px
  end = new Int16Array(0);
  strip = new Uint16Array(0);
  colour = new Uint16Array(0);
  item = new Uint32Array(0);  // index in its row
  row = new Uint16Array(0);   // index in rows
  readonly rows: FrameRow[] = [];
  rowCount = 0;

  // Makes room for a rectangle in every pixel of every strip, twice: flat strips hold several levels.
  reserve(strips: number, width: number): void {
    const capacity = Math.max(1024, strips * width * 2);
    if (this.begin.length >= capacity) return;
    this.begin = new Int16Array(capacity);
    this.end = new Int16Array(capacity);
    this.strip = new Uint16Array(capacity);
    this.colour = new Uint16Array(capacity);
    this.item = new Uint32Array(capacity);
    this.row = new Uint16Array(capacity);
  }

  clear(): void {
    this.count = 0;
    this.rowCount = 0;
  }

  // Takes a FrameRow of an earlier frame where there is one.
  addRow(track: Track, tile: SpanTile, row: TileRow, unit: number, flat: boolean): FrameRow {
    const first = this.count;
    let frame = this.rows[this.rowCount];
    if (frame) {
      frame.track = track;
      frame.tile = tile;
      frame.row = row;
      frame.unit = unit;
      frame.flat = flat;
      frame.first = frame.last = first;
    } else {
      this.rows.push(frame = {track, tile, row, unit, flat, first, last: first});
    }
    ++this.rowCount;
    return frame;
  }

  // The rectangle at this pixel of this strip: the last painted wins. Widens to `reach` pixels, for the pointer. -1:
  // none.
  hit(x: number, strip: number, reach: number): number {
    let best = -1, bestDistance = reach + 1;
    for (let r = 0; r < this.rowCount; ++r) {
      const row = this.rows[r];
      if (strip < row.unit || strip >= row.unit + row.track.units) continue;
      for (let i = row.first; i < row.last; ++i) {
        if (this.strip[i] !== strip) continue;
        const distance = x < this.begin[i] ? this.begin[i] - x : x >= this.end[i] ? x - this.end[i] + 1 : 0;
        if (distance < bestDistance || (distance === 0 && bestDistance === 0)) {
          best = i;
          bestDistance = distance;
        }
      }
    }
    return best;
  }
}
