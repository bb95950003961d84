// SPDX-License-Identifier: Apache-2.0
import {kLabel, kRecordSize, Scene} from '../model/scene';

const kInset = 4;
const kCutsMax = 50000;

// Writes the names of wide spans. Text is the largest part of a frame, so each name is measured once, and cut to fit
// once per 8 px of room.
export class LabelPainter {
  private widths: number[] = [];
  private cuts = new Map<number, string>();
  private font = '';

  constructor(private readonly names: readonly string[]) {}

  setFont(font: string): void {
    if (font === this.font) return;
    this.font = font;
    this.widths = [];
    this.cuts.clear();
  }

  paint(ctx: CanvasRenderingContext2D, frame: Scene, colour: string): void {
    const {data, unitPx} = frame;
    ctx.font = this.font;
    ctx.fillStyle = colour;
    ctx.textBaseline = 'middle';
    for (let i = frame.at(kLabel); i < frame.at(kLabel + 1); i += kRecordSize[kLabel]) {
      const text = this.fit(ctx, data[i + 3], data[i + 2] - 2 * kInset);
      if (text) ctx.fillText(text, data[i] + kInset, data[i + 1] * unitPx + unitPx / 2);
    }
  }

  private fit(ctx: CanvasRenderingContext2D, name: number, room: number): string {
    const text = this.names[name] ?? '';
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
