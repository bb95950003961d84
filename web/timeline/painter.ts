// SPDX-License-Identifier: Apache-2.0
import {Gap} from '../model/capture_layout';
import {DrawList} from '../model/draw_list';
import {LayoutPass, PassView} from '../model/layout_pass';
import {Palette} from '../model/palette';
import {SpanTile} from '../model/span_tile';
import {axisStep, formatCount, formatDuration} from '../model/text_format';

import {LabelPainter} from './label_painter';
import {ThemeColours} from './theme_colours';
import {TimelineState} from './timeline_state';
import {VisibleTracks} from './visible_tracks';

export const kUnit = 17;  // CSS px of a nesting level
const kFont = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const kLabelFrom = 36, kLabelFromMoving = 80;

type StripCanvas = HTMLCanvasElement;

// TypeScript 4.8 has no type for OffscreenCanvas, and not every browser has the class.
function makeStripCanvas(width: number, height: number): StripCanvas {
  const made = (globalThis as {OffscreenCanvas?: new (w: number, h: number) => unknown}).OffscreenCanvas;
  if (made) return new made(width, height) as StripCanvas;
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  return canvas;
}

// Draws the spans: all of them into one strip with a pixel row a nesting level, which is stretched onto the canvas in
// one call; then counters, hatches and text. Measured at a third of the time of a fillRect a span.
export class Painter {
  readonly list = new DrawList();
  unitPx = kUnit;
  width = 0;  // px of the device
  height = 0;
  scale = 1;
  private readonly ctx: CanvasRenderingContext2D;
  private readonly labels: LabelPainter;
  private readonly pass: LayoutPass;
  private palette: Palette;
  private colours = new ThemeColours();
  private strip: {canvas: StripCanvas, ctx: CanvasRenderingContext2D, image: ImageData, pixels: Uint32Array}|null =
      null;
  private counter = new Float32Array(0);
  private hatches = new Map<string, CanvasPattern>();
  private readonly view: PassView = {from: 0, nsPerPx: 1, width: 0, strips: 0};

  constructor(readonly canvas: HTMLCanvasElement, private readonly state: TimelineState) {
    this.ctx = canvas.getContext('2d', {alpha: false})!;
    this.labels = new LabelPainter(state.names);
    this.pass = new LayoutPass(state.names);
    this.palette = new Palette([], this.colours.dark);
  }

  get strips(): number {
    return Math.ceil(this.height / this.unitPx);
  }

  themeChanged(): void {
    this.colours = new ThemeColours();
    this.palette = new Palette(this.state.names.categories, this.colours.dark);
    this.hatches.clear();
  }

  colourOf(category: string): string {
    this.refreshPalette();
    return this.palette.css[this.state.names.category(category) * 3] ?? this.colours.faint;
  }

  resize(cssWidth: number, cssHeight: number): void {
    this.scale = window.devicePixelRatio || 1;
    this.unitPx = Math.round(kUnit * this.scale);
    const width = Math.max(1, Math.round(cssWidth * this.scale)),
          height = Math.max(1, Math.round(cssHeight * this.scale));
    if (width === this.width && height === this.height) return;
    this.width = this.canvas.width = width;
    this.height = this.canvas.height = height;
    this.canvas.style.width = `${cssWidth}px`;
    this.canvas.style.height = `${cssHeight}px`;
    this.list.reserve(this.strips, width);
    this.counter = new Float32Array(width);
  }

  // Draws one frame. `moving`: fewer labels, so that the next frame is in time.
  paint(visible: VisibleTracks, tileOf: {tileOf(stream: number): SpanTile|null}, moving: boolean): void {
    const {viewport} = this.state, {view, list, ctx} = this;
    this.refreshPalette();
    view.from = viewport.from;
    view.nsPerPx = viewport.span / this.width;
    view.width = this.width;
    view.strips = this.strips;
    list.clear();
    const strip = this.prepareStrip();
    this.fillBackground(strip.pixels, visible);
    for (let i = 0; i < visible.count; ++i)
      this.layOut(visible, i, tileOf.tileOf(visible.tracks[i].stream), strip.pixels);
    this.fillSpans(strip.pixels);
    strip.ctx.putImageData(strip.image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(strip.canvas, 0, 0, this.width, view.strips, 0, 0, this.width, view.strips * this.unitPx);
    this.paintLines(visible);
    for (let r = 0; r < list.rowCount; ++r)
      if (list.rows[r].row.isCounter) this.paintCounter(r);
    for (let i = 0; i < visible.count; ++i) this.paintGaps(visible, i);
    this.labels.setFont(`${Math.round(11 * this.scale)}px ${kFont}`);
    this.labels.paint(
        ctx, list, (moving ? kLabelFromMoving : kLabelFrom) * this.scale, this.unitPx, this.colours.label);
  }

  private refreshPalette(): void {
    const {categories} = this.state.names;
    if (this.palette.abgr.length !== Math.max(1, categories.length) * 3)
      this.palette = new Palette(categories, this.colours.dark);
  }

  private prepareStrip(): NonNullable<Painter['strip']> {
    const height = this.strips;
    if (!this.strip || this.strip.image.width !== this.width || this.strip.image.height !== height) {
      const canvas = makeStripCanvas(this.width, height);
      const ctx = canvas.getContext('2d', {alpha: false, willReadFrequently: true}) as CanvasRenderingContext2D;
      const image = ctx.createImageData(this.width, height);
      this.strip = {canvas, ctx, image, pixels: new Uint32Array(image.data.buffer)};
    }
    return this.strip;
  }

  private fillBackground(pixels: Uint32Array, visible: VisibleTracks): void {
    const colours = this.colours.pixels, {width} = this;
    pixels.fill(colours.background);
    for (let i = 0; i < visible.count; ++i) {
      const track = visible.tracks[i];
      if (track.kind === 'row') continue;
      const unit = visible.unit[i],
            colour = track.kind === 'instance' ? colours.header
          : track.expanded                     ? colours.band
                                               : 0;
      if (colour !== 0 && unit >= 0 && unit < this.strips) pixels.fill(colour, unit * width, (unit + 1) * width);
    }
    const {grid} = colours, step = axisStep(this.view.nsPerPx, 110 * this.scale);
    for (let t = Math.ceil(this.view.from / step) * step;; t += step) {
      const x = Math.floor((t - this.view.from) / this.view.nsPerPx);
      if (x >= width) break;
      for (let at = x; at < pixels.length; at += width) pixels[at] = grid;
    }
  }

  // Lays out the rows of one track, and marks where no answer covers it.
  private layOut(visible: VisibleTracks, i: number, tile: SpanTile|null, pixels: Uint32Array): void {
    const track = visible.tracks[i], unit = visible.unit[i];
    if (track.kind === 'instance' || (track.kind === 'rank' && track.expanded)) return;
    this.fillUnknown(pixels, unit, track.units, tile);
    const rows = tile?.byStream.get(track.stream);
    if (!tile || !rows) return;
    if (track.kind === 'rank') {
      const hasRuntime = rows.some(row => row.source === 'runtime');
      // A host has counters only; its strip shows the first.
      const hasSpans = rows.some(row => !row.isCounter);
      if (!hasSpans && rows.length > 0) this.list.addRow(track, tile, rows[0], unit, true);
      let first = true;
      for (const row of rows) {
        if (row.isCounter || (hasRuntime ? row.source !== 'runtime' : !first)) continue;
        first = false;
        this.pass.addRow(this.list, this.list.addRow(track, tile, row, unit, true), this.view);
      }
      return;
    }
    for (const row of rows) {
      if (row.row !== track.row?.row) continue;
      const frame = this.list.addRow(track, tile, row, unit, false);
      if (!row.isCounter) this.pass.addRow(this.list, frame, this.view);
    }
  }

  private fillUnknown(pixels: Uint32Array, unit: number, units: number, tile: SpanTile|null): void {
    const {begin, end} = this.state.layout, {view, width} = this, colour = this.colours.pixels.unknown;
    const px = (time: number): number => Math.max(0, Math.min(width, Math.round((time - view.from) / view.nsPerPx)));
    const left = px(begin), right = px(end), from = tile ? px(tile.from) : right, to = tile ? px(tile.to) : right;
    for (let u = Math.max(0, unit); u < Math.min(this.strips, unit + units); ++u) {
      if (from > left) pixels.fill(colour, u * width + left, u * width + from);
      if (to < right) pixels.fill(colour, u * width + Math.max(left, to), u * width + right);
    }
  }

  // The last pixel of a span is left as a gap to the next.
  private fillSpans(pixels: Uint32Array): void {
    const {list, width} = this, {abgr} = this.palette;
    for (let i = 0; i < list.count; ++i) {
      const length = list.end[i] - list.begin[i], at = list.strip[i] * width + list.begin[i],
            colour = abgr[list.colour[i]];
      if (length === 1)
        pixels[at] = colour;
      else
        for (let p = at, end = at + (length >= 3 ? length - 1 : length); p < end; ++p) pixels[p] = colour;
    }
  }

  private paintLines(visible: VisibleTracks): void {
    const {ctx, unitPx, colours} = this;
    ctx.fillStyle = colours.background;
    for (let u = 1; u <= this.strips; ++u) ctx.fillRect(0, u * unitPx - 1, this.width, 1);
    ctx.fillStyle = colours.line;
    for (let i = 0; i < visible.count; ++i)
      ctx.fillRect(0, (visible.unit[i] + visible.tracks[i].units) * unitPx - 1, this.width, 1);
    if (visible.pinnedUnits > 0) {
      ctx.fillStyle = colours.accent;
      ctx.fillRect(0, visible.pinnedUnits * unitPx - 1, this.width, 1);
    }
  }

  private paintCounter(r: number): void {
    const {ctx, counter, unitPx, list} = this, frame = list.rows[r];
    this.pass.fillCounter(counter, frame, this.view);
    const max = Math.max(frame.track.row?.max ?? 0, frame.row.max) || 1;  // the same scale at every zoom
    const bottom = (frame.unit + frame.track.units) * unitPx - 1, height = frame.track.units * unitPx - 4;
    ctx.fillStyle = this.colourOf('counter');
    for (let x = 0; x < this.width;) {
      const value = counter[x];
      let end = x + 1;
      while (end < this.width && counter[end] === value) ++end;
      if (value > 0) {
        const h = Math.max(1, Math.round(value / max * height));
        ctx.fillRect(x, bottom - h, end - x, h);
      }
      x = end;
    }
  }

  // Losses, suspensions and damage are drawn where they are, never only counted.
  private paintGaps(visible: VisibleTracks, i: number): void {
    const track = visible.tracks[i], {ctx, view, unitPx, colours} = this;
    if (track.kind === 'instance' || (track.kind === 'rank' && track.expanded) || track.row?.source === 'counter')
      return;
    for (const gap of this.state.layout.stream(track.stream)?.gaps ?? []) {
      const left = Math.max(0, (gap.from - view.from) / view.nsPerPx);
      const right = Math.min(this.width, Math.max((gap.to - view.from) / view.nsPerPx, left + 3 * this.scale));
      if (right <= 0 || left >= this.width || right <= left) continue;
      const y = visible.unit[i] * unitPx, height = track.units * unitPx - 1, colour = colours[gap.kind];
      ctx.fillStyle = colours.background;
      ctx.globalAlpha = 0.55;
      ctx.fillRect(left, y, right - left, height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = this.hatch(colour, gap.kind === 'suspension');
      ctx.fillRect(left, y, right - left, height);
      ctx.fillStyle = colour;
      ctx.fillRect(left, y, 1, height);
      ctx.fillRect(right - 1, y, 1, height);
      const isFirst = track.kind === 'rank' || this.state.tree.rowsOf.get(track.stream)?.[0] === track.row;
      if (isFirst && right - left > 90 * this.scale)
        this.paintGapText(gap, left, y + Math.min(height, unitPx) / 2, right - left);
    }
  }

  private paintGapText(gap: Gap, left: number, y: number, room: number): void {
    const {ctx, colours} = this, text = gapText(gap);
    ctx.font = `${Math.round(11 * this.scale)}px ${kFont}`;
    ctx.textBaseline = 'middle';
    const width = ctx.measureText(text).width;
    if (width + 16 > room) return;
    ctx.fillStyle = colours.background;
    ctx.fillRect(left + 6, y - 7 * this.scale, width + 8, 14 * this.scale);
    ctx.fillStyle = colours[gap.kind];
    ctx.fillText(text, left + 10, y);
  }

  private hatch(colour: string, isCalm: boolean): CanvasPattern|string {
    let pattern = this.hatches.get(colour);
    if (!pattern) {
      const size = Math.round((isCalm ? 8 : 6) * this.scale), tile = document.createElement('canvas');
      tile.width = tile.height = size;
      const ctx = tile.getContext('2d')!;
      ctx.strokeStyle = colour;
      ctx.lineWidth = this.scale * (isCalm ? 1 : 1.4);
      ctx.beginPath();
      for (const shift of [-size, 0, size]) {
        ctx.moveTo(shift, size);
        ctx.lineTo(shift + size, 0);
      }
      ctx.stroke();
      pattern = this.ctx.createPattern(tile, 'repeat') ?? undefined;
      if (!pattern) return colour;
      this.hatches.set(colour, pattern);
    }
    return pattern;
  }
}

export function gapText(gap: Gap): string {
  const length = formatDuration(gap.to - gap.from);
  if (gap.kind === 'suspension') return `suspended for ${length}`;
  const what = gap.kind === 'damage' ? 'damaged' : 'lost';
  return gap.events > 0 ? `${formatCount(gap.events)} events ${what} in ${length}`
                        : `events ${what} in ${length}, number unknown`;
}
