// SPDX-License-Identifier: Apache-2.0
import * as scene from '../model/scene';

import {LabelPainter} from './label_painter';

const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// The colours of a theme that a scene needs; plain data, so that a worker can have them.
export interface SceneColours {
  background: string;
  line: string;
  accent: string;
  label: string;
  loss: string;
  suspension: string;
  damage: string;
  pixels: {background: number, band: number, header: number, unknown: number, grid: number};
}

// The colours of spans: as pixels, and as the style sheet writes them.
export interface SceneTheme {
  colours: SceneColours;
  abgr: Uint32Array;
  css: string[];
}

// A canvas of the page, or one without a document, which TypeScript 4.8 has no type for.
export type AnyCanvas = HTMLCanvasElement;

function makeCanvas(width: number, height: number): AnyCanvas {
  const made = (globalThis as {OffscreenCanvas?: new (w: number, h: number) => unknown}).OffscreenCanvas;
  if (made) return new made(width, height) as AnyCanvas;
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

// Draws scenes, on the page's thread or in a worker: all spans into one strip with a pixel row a nesting level, which
// is stretched onto the canvas in one call; then counters, hatches and text. Measured at a third of the time of a
// fillRect a span.
export class ScenePainter {
  private readonly ctx: CanvasRenderingContext2D;
  private readonly names: string[] = [];
  private readonly labels = new LabelPainter(this.names);
  private theme: SceneTheme|null = null;
  private strip: {canvas: AnyCanvas, ctx: CanvasRenderingContext2D, image: ImageData, pixels: Uint32Array}|null = null;
  private readonly hatches = new Map<string, CanvasPattern>();

  constructor(private readonly canvas: AnyCanvas) {
    this.ctx = canvas.getContext('2d', {alpha: false})!;
  }

  setTheme(theme: SceneTheme): void {
    this.theme = theme;
    this.hatches.clear();
  }

  // Appends names; scenes refer to all of them by number.
  addNames(names: readonly string[]): void {
    for (const name of names) this.names.push(name);
  }

  paint(frame: scene.Scene): void {
    const {theme, ctx, canvas} = this, {width, height, unitPx, strips} = frame;
    if (!theme) return;
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const strip = this.prepareStrip(width, strips);
    this.fillStrip(frame, strip.pixels, theme);
    strip.ctx.putImageData(strip.image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(strip.canvas, 0, 0, width, strips, 0, 0, width, strips * unitPx);
    this.paintLines(frame, theme.colours);
    this.paintBars(frame, theme);
    this.paintGaps(frame, theme.colours);
    this.labels.setFont(fontOf(frame.scale));
    this.labels.paint(ctx, frame, theme.colours.label);
  }

  private prepareStrip(width: number, height: number): NonNullable<ScenePainter['strip']> {
    if (!this.strip || this.strip.image.width !== width || this.strip.image.height !== height) {
      const canvas = makeCanvas(width, height);
      const ctx = canvas.getContext('2d', {alpha: false, willReadFrequently: true}) as CanvasRenderingContext2D;
      const image = ctx.createImageData(width, height);
      this.strip = {canvas, ctx, image, pixels: new Uint32Array(image.data.buffer)};
    }
    return this.strip;
  }

  private fillStrip(frame: scene.Scene, pixels: Uint32Array, {colours, abgr}: SceneTheme): void {
    const {data, width} = frame, fills = [colours.pixels.header, colours.pixels.band, colours.pixels.unknown];
    pixels.fill(colours.pixels.background);
    const paintFills = (isUnknown: boolean): void => {
      for (let i = frame.at(scene.kFill); i < frame.at(scene.kFill + 1); i += scene.kRecordSize[scene.kFill]) {
        if ((data[i + 3] === scene.kUnknownFill) === isUnknown)
          pixels.fill(fills[data[i + 3]], data[i] * width + data[i + 1], data[i] * width + data[i + 2]);
      }
    };
    paintFills(false);
    for (let i = frame.at(scene.kGrid); i < frame.at(scene.kGrid + 1); ++i)
      for (let at = data[i]; at < pixels.length; at += width) pixels[at] = colours.pixels.grid;
    paintFills(true);
    for (let i = frame.at(scene.kSpan), n = frame.at(scene.kSpan + 1); i < n; i += 2) {
      const begin = data[i] & 0xffff, end = data[i] >>> 16, row = (data[i + 1] & 0xffff) * width,
            colour = abgr[data[i + 1] >>> 16], length = end - begin;
      // The last pixel of a span is left as a gap to the next.
      if (length === 1)
        pixels[row + begin] = colour;
      else
        for (let p = row + begin, last = row + (length >= 3 ? end - 1 : end); p < last; ++p) pixels[p] = colour;
    }
  }

  private paintLines(frame: scene.Scene, colours: SceneColours): void {
    const {ctx} = this, {data, width, unitPx, strips} = frame;
    ctx.fillStyle = colours.background;
    for (let u = 1; u <= strips; ++u) ctx.fillRect(0, u * unitPx - 1, width, 1);
    for (let i = frame.at(scene.kLine); i < frame.at(scene.kLine + 1); i += 2) {
      ctx.fillStyle = data[i + 1] === scene.kPinnedLine ? colours.accent : colours.line;
      ctx.fillRect(0, data[i], width, 1);
    }
  }

  private paintBars(frame: scene.Scene, {css}: SceneTheme): void {
    const {ctx} = this, {data} = frame;
    ctx.fillStyle = css[frame.counterColour] ?? '#888888';
    for (let i = frame.at(scene.kBar); i < frame.at(scene.kBar + 1); i += 4)
      ctx.fillRect(data[i], data[i + 1], data[i + 2], data[i + 3]);
  }

  // Losses, suspensions and damage.
  private paintGaps(frame: scene.Scene, colours: SceneColours): void {
    const {ctx} = this, {data} = frame, size = scene.kRecordSize[scene.kGap];
    for (let i = frame.at(scene.kGap); i < frame.at(scene.kGap + 1); i += size) {
      const x = data[i], y = data[i + 1], width = data[i + 2], height = data[i + 3], kind = data[i + 4];
      const colour = [colours.loss, colours.suspension, colours.damage][kind];
      ctx.fillStyle = colours.background;
      ctx.globalAlpha = 0.55;
      ctx.fillRect(x, y, width, height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = this.hatch(colour, kind === scene.kSuspensionGap, frame.scale);
      ctx.fillRect(x, y, width, height);
      ctx.fillStyle = colour;
      ctx.fillRect(x, y, 1, height);
      ctx.fillRect(x + width - 1, y, 1, height);
      const text = frame.texts[data[i + 5]];
      if (text) this.paintGapText(text, x, y + data[i + 6] / 2, width, frame.scale, colour, colours.background);
    }
  }

  private paintGapText(
      text: string, x: number, y: number, room: number, scale: number, colour: string, background: string): void {
    const {ctx} = this;
    ctx.font = fontOf(scale);
    ctx.textBaseline = 'middle';
    const width = ctx.measureText(text).width;
    if (width + 16 > room) return;
    ctx.fillStyle = background;
    ctx.fillRect(x + 6, y - 7 * scale, width + 8, 14 * scale);
    ctx.fillStyle = colour;
    ctx.fillText(text, x + 10, y);
  }

  private hatch(colour: string, isCalm: boolean, scale: number): CanvasPattern|string {
    const key = `${colour} ${scale}`;
    let pattern = this.hatches.get(key);
    if (!pattern) {
      const size = Math.round((isCalm ? 8 : 6) * scale), tile = makeCanvas(size, size);
      const ctx = tile.getContext('2d') as CanvasRenderingContext2D;
      ctx.strokeStyle = colour;
      ctx.lineWidth = scale * (isCalm ? 1 : 1.4);
      ctx.beginPath();
      for (const shift of [-size, 0, size]) {
        ctx.moveTo(shift, size);
        ctx.lineTo(shift + size, 0);
      }
      ctx.stroke();
      pattern = this.ctx.createPattern(tile, 'repeat') ?? undefined;
      if (!pattern) return colour;
      this.hatches.set(key, pattern);
    }
    return pattern;
  }
}

function fontOf(scale: number): string {
  return `${Math.round(11 * scale)}px ${kFont}`;
}
