// SPDX-License-Identifier: Apache-2.0
import {Gap} from '../model/capture_layout';
import {kTones} from '../model/colour_group';
import {DrawList} from '../model/draw_list';
import {LayoutPass, PassView} from '../model/layout_pass';
import {kVariants, Palette} from '../model/palette';
import * as scene from '../model/scene';
import {SpanTile} from '../model/span_tile';
import {axisStep, formatCount, formatDuration} from '../model/text_format';
import {showsSpans, Track} from '../model/track_tree';

import {SceneCanvas} from './scene_canvas';
import {ThemeColours} from './theme_colours';
import {TimelineState} from './timeline_state';
import {VisibleTracks} from './visible_tracks';

export const kUnit = 17;     // CSS px of a nesting level
const kRuntime = 'runtime';  // of the rows that a collapsed rank shows
const kLabelFrom = 36, kLabelFromMoving = 80;
const kLabelsMovingMax = 300;  // on the page's thread, so that a frame is in time

// Where the page's script is, which the worker loads too; '' in tests.
let script = '';

export function setWorkerScript(address: string): void {
  script = address;
}

// Lays out the spans of a frame and composes its scene. The layout pass is the page's, so that what the pointer hits is
// what was drawn; a SceneCanvas draws, in a worker where it can.
export class Painter {
  readonly list = new DrawList();
  unitPx = kUnit;
  width = 0;  // px of the device
  height = 0;
  scale = 1;
  private readonly surface: SceneCanvas;
  private readonly pass: LayoutPass;
  private palette: Palette;
  private colours = new ThemeColours();
  private counter = new Float32Array(0);
  private readonly view: PassView = {from: 0, nsPerPx: 1, width: 0, strips: 0};

  // `redraw` is called when the canvas was exchanged.
  constructor(private readonly state: TimelineState, redraw: () => void) {
    this.surface = new SceneCanvas(script, state.names.names, redraw);
    this.pass = new LayoutPass(state.names);
    this.palette = new Palette([], this.colours.dark);
  }

  // It may be exchanged for another one.
  get canvas(): HTMLCanvasElement {
    return this.surface.canvas;
  }

  get strips(): number {
    return Math.ceil(this.height / this.unitPx);
  }

  close(): void {
    this.surface.close();
  }

  themeChanged(): void {
    this.colours = new ThemeColours();
    this.makePalette();
  }

  colourOf(category: string): string {
    const number = this.state.names.category(category);
    this.refreshPalette();
    return this.palette.cssOf(number) ?? this.colours.faint;
  }

  resize(cssWidth: number, cssHeight: number): void {
    this.scale = window.devicePixelRatio || 1;
    this.unitPx = Math.round(kUnit * this.scale);
    this.width = Math.max(1, Math.round(cssWidth * this.scale));
    this.height = Math.max(1, Math.round(cssHeight * this.scale));
    this.canvas.style.width = `${cssWidth}px`;
    this.canvas.style.height = `${cssHeight}px`;
    this.list.reserve(this.strips, this.width);
    if (this.counter.length !== this.width) this.counter = new Float32Array(this.width);
  }

  // Draws one frame. `moving`: fewer labels, so that the next frame is in time.
  paint(visible: VisibleTracks, tileOf: {tileOf(stream: number): SpanTile|null}, moving: boolean): void {
    const {viewport} = this.state, {view, list, surface: {writer}} = this;
    const counter = this.state.names.category('counter');
    this.refreshPalette();
    view.from = viewport.from;
    view.nsPerPx = viewport.span / this.width;
    view.width = this.width;
    view.strips = this.strips;
    list.clear();
    writer.start(this.width, this.height, this.unitPx, this.strips, this.scale, counter * kTones * kVariants);
    writer.begin(scene.kFill, visible.count * 2);
    for (let i = 0; i < visible.count; ++i)
      this.layOut(visible.tracks[i], visible.unit[i], tileOf.tileOf(visible.tracks[i].stream));
    this.putGrid();
    this.putSpans();
    this.putLines(visible);
    writer.begin(scene.kBar, 0);
    for (let r = 0; r < list.rowCount; ++r)
      if (list.rows[r].row.isCounter) this.putCounter(r);
    writer.begin(scene.kGap, 0);
    for (let i = 0; i < visible.count; ++i) this.putGaps(visible.tracks[i], visible.unit[i]);
    this.putLabels(moving);
    writer.finish();
    this.surface.show();
  }

  private refreshPalette(): void {
    if (this.palette.abgr.length !== Math.max(1, this.state.names.categories.length) * kTones * kVariants)
      this.makePalette();
  }

  private makePalette(): void {
    const {colours} = this, {abgr, css} = this.palette = new Palette(this.state.names.categories, colours.dark);
    this.surface.setTheme({colours: {...colours}, abgr, css});
  }

  // Lays out the rows of one track, and marks where no answer covers it.
  private layOut(track: Track, unit: number, tile: SpanTile|null): void {
    const {writer} = this.surface;
    if (!showsSpans(track)) {
      if (unit >= 0 && unit < this.strips)
        writer.put(unit, 0, this.width, track.kind === 'group' ? scene.kHeaderFill : scene.kBandFill);
      return;
    }
    this.putUnknown(unit, track.units, tile);
    const rows = tile?.byStream.get(track.stream);
    if (!tile || !rows) return;
    if (track.kind === 'rank') return this.layOutFlat(track, unit, tile);
    for (let i = 0; i < rows.length; ++i) {
      if (rows[i].row !== track.row?.row) continue;
      const frame = this.list.addRow(track, tile, rows[i], unit, false);
      if (!rows[i].isCounter) this.pass.addRow(this.list, frame, this.view);
    }
  }

  // A collapsed rank shows its runtime rows; without any, the first of its rows; a host, which has counters only, the
  // first of them.
  private layOutFlat(track: Track, unit: number, tile: SpanTile): void {
    const rows = tile.byStream.get(track.stream)!;
    let hasRuntime = false, hasSpans = false;
    for (let i = 0; i < rows.length; ++i) {
      hasRuntime = hasRuntime || rows[i].source === kRuntime;
      hasSpans = hasSpans || !rows[i].isCounter;
    }
    if (!hasSpans && rows.length > 0) this.list.addRow(track, tile, rows[0], unit, true);
    let first = true;
    for (let i = 0; i < rows.length; ++i) {
      if (rows[i].isCounter || (hasRuntime ? rows[i].source !== kRuntime : !first)) continue;
      first = false;
      this.pass.addRow(this.list, this.list.addRow(track, tile, rows[i], unit, true), this.view);
    }
  }

  private px(time: number): number {
    return Math.max(0, Math.min(this.width, Math.round((time - this.view.from) / this.view.nsPerPx)));
  }

  private putUnknown(unit: number, units: number, tile: SpanTile|null): void {
    const {begin, end} = this.state.layout, {writer} = this.surface;
    const left = this.px(begin), right = this.px(end), from = tile ? this.px(tile.from) : right,
          to = tile ? this.px(tile.to) : right;
    for (let u = Math.max(0, unit); u < Math.min(this.strips, unit + units); ++u) {
      if (from > left) writer.put(u, left, from, scene.kUnknownFill);
      if (to < right) writer.put(u, Math.max(left, to), right, scene.kUnknownFill);
    }
  }

  private putGrid(): void {
    const {view, surface: {writer}} = this, step = axisStep(view.nsPerPx, 110 * this.scale);
    const first = Math.ceil(view.from / step);
    // Counted, because adding a small step to a very large time may not change it.
    const lines = Math.ceil(view.width * view.nsPerPx / step) + 1;
    writer.begin(scene.kGrid, lines);
    for (let i = 0; i < lines; ++i) {
      const x = Math.floor(((first + i) * step - view.from) / view.nsPerPx);
      if (x >= 0 && x < view.width) writer.put(x);
    }
  }

  private putSpans(): void {
    const {list, surface: {writer}} = this, {begin, end, strip, colour} = list;
    writer.begin(scene.kSpan, list.count);
    for (let i = 0; i < list.count; ++i) writer.put(begin[i] | end[i] << 16, strip[i] | colour[i] << 16);
  }

  private putLines(visible: VisibleTracks): void {
    const {writer} = this.surface, {unitPx} = this;
    writer.begin(scene.kLine, visible.count + 1);
    for (let i = 0; i < visible.count; ++i)
      writer.put((visible.unit[i] + visible.tracks[i].units) * unitPx - 1, scene.kTrackLine);
    if (visible.pinnedUnits > 0) writer.put(visible.pinnedUnits * unitPx - 1, scene.kPinnedLine);
  }

  private putCounter(r: number): void {
    const {counter, unitPx, list, surface: {writer}} = this, frame = list.rows[r];
    this.pass.fillCounter(counter, frame, this.view);
    const max = Math.max(frame.track.row?.max ?? 0, frame.row.max) || 1;  // the same scale at every zoom
    const bottom = (frame.unit + frame.track.units) * unitPx - 1, height = frame.track.units * unitPx - 4;
    for (let x = 0; x < this.width;) {
      const value = counter[x];
      let end = x + 1;
      while (end < this.width && counter[end] === value) ++end;
      if (value > 0) {
        const h = Math.max(1, Math.round(value / max * height));
        writer.put(x, bottom - h, end - x, h);
      }
      x = end;
    }
  }

  // Losses, suspensions and damage are drawn where they are, never only counted.
  private putGaps(track: Track, unit: number): void {
    const {view, unitPx, surface: {writer}} = this;
    if (!showsSpans(track) || track.row?.source === 'counter') return;
    const stream = this.state.layout.stream(track.stream);
    if (!stream) return;
    const isFirst = track.kind === 'rank' || this.state.tree.rowsOf.get(track.stream)?.[0] === track.row;
    for (let i = 0; i < stream.gaps.length; ++i) {
      const gap = stream.gaps[i];
      const left = Math.max(0, Math.round((gap.from - view.from) / view.nsPerPx));
      const right =
          Math.round(Math.min(this.width, Math.max((gap.to - view.from) / view.nsPerPx, left + 3 * this.scale)));
      if (right <= 0 || left >= this.width || right <= left) continue;
      const height = track.units * unitPx - 1;
      const kind = gap.kind === 'damage' ? scene.kDamageGap
          : gap.kind === 'suspension'    ? scene.kSuspensionGap
                                         : scene.kLossGap;
      const text = isFirst && right - left > 90 * this.scale ? gapText(gap) : '';
      writer.putGap(left, unit * unitPx, right - left, height, kind, text, Math.min(height, unitPx));
    }
  }

  // The names of wide spans.
  private putLabels(moving: boolean): void {
    const {list, surface: {writer}} = this, least = (moving ? kLabelFromMoving : kLabelFrom) * this.scale;
    const most = moving && !this.surface.isInWorker ? kLabelsMovingMax : Infinity;
    writer.begin(scene.kLabel, 0);
    let labels = 0;
    for (let i = 0; i < list.count && labels < most; ++i) {
      const begin = list.begin[i];
      let room = list.end[i] - begin;
      if (room < least) continue;
      const frame = list.rows[list.row[i]];
      if (frame.flat && i + 1 < frame.last) {
        // In a flat strip a span's text ends where its first child begins.
        room = Math.min(room, list.begin[i + 1] - begin);
        if (room < least) continue;
      }
      writer.put(begin, list.strip[i], room, frame.tile.nameNumbers[frame.row.nameOf[list.item[i]]]);
      ++labels;
    }
  }
}

export function gapText(gap: Gap): string {
  const length = formatDuration(gap.to - gap.from);
  if (gap.kind === 'suspension') return `suspended for ${length}`;
  const what = gap.kind === 'damage' ? 'damaged' : 'lost';
  return gap.events > 0 ? `${formatCount(gap.events)} events ${what} in ${length}`
                        : `events ${what} in ${length}, number unknown`;
}
