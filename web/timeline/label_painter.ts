// SPDX-License-Identifier: Apache-2.0
import {DrawList} from '../model/draw_list';
import {NameTable} from '../model/name_table';

const kInset = 4;
const kCutsMax = 50000;

// Writes the names of wide spans. Text is the largest part of a frame, so each name is measured once, and cut to fit
// once per 8 px of room.
export class LabelPainter {
  private widths: number[] = [];
  private cuts = new Map<number, string>();
  private font = '';

  constructor(private readonly names: NameTable) {}

  setFont(font: string): void {
    if (font === this.font) return;
    this.font = font;
    this.widths = [];
    this.cuts.clear();
  }

  // Names spans of leastPx and more. Returns how many.
  paint(ctx: CanvasRenderingContext2D, list: DrawList, leastPx: number, unitPx: number, colour: string): number {
    ctx.font = this.font;
    ctx.fillStyle = colour;
    ctx.textBaseline = 'middle';
    let painted = 0;
    for (let i = 0; i < list.count; ++i) {
      const begin = list.begin[i];
      let room = list.end[i] - begin;
      if (room < leastPx) continue;
      const frame = list.rows[list.row[i]];
      if (frame.flat && i + 1 < frame.last) {
        // In a flat strip a span's text ends where its first child begins.
        room = Math.min(room, list.begin[i + 1] - begin);
        if (room < leastPx) continue;
      }
      const name = frame.tile.nameNumbers[frame.row.nameOf[list.item[i]]];
      const text = this.fit(ctx, name, room - 2 * kInset);
      if (!text) continue;
      ctx.fillText(text, begin + kInset, list.strip[i] * unitPx + unitPx / 2);
      ++painted;
    }
    return painted;
  }

  private fit(ctx: CanvasRenderingContext2D, name: number, room: number): string {
    const text = this.names.names[name];
    const width = this.widths[name] ??= ctx.measureText(text).width;
    if (width <= room) return text;
    const step = room >> 3, key = name * 8192 + step;
    let cut = this.cuts.get(key);
    if (cut === undefined) {
      if (this.cuts.size > kCutsMax) this.cuts.clear();
      this.cuts.set(key, cut = this.cutTo(ctx, text, width, step << 3));
    }
    return cut;
  }

  private cutTo(ctx: CanvasRenderingContext2D, text: string, width: number, room: number): string {
    for (let n = Math.floor(text.length * room / width); n > 1; --n) {
      const cut = text.slice(0, n) + '…';
      if (ctx.measureText(cut).width <= room) return cut;
    }
    return '';
  }
}
