// SPDX-License-Identifier: Apache-2.0
import {CaptureLayout, Gap} from '../model/capture_layout';
import {SpanTile} from '../model/span_tile';

import {ThemeColours} from './theme_colours';
import {TimelineHost} from './timeline_host';

const kHeight = 38, kBins = 512, kGapsMax = 5000;

// The whole capture in one strip: how busy its first ranks are, what is missing, hits and markers, and the window,
// which can be dragged.
export class Minimap {
  readonly canvas = document.createElement('canvas');
  private readonly ctx = this.canvas.getContext('2d')!;
  // What does not move with the window, drawn again only when it changes: thousands of gaps are too many for each
  // frame.
  private readonly still = document.createElement('canvas');
  private readonly stillCtx = this.still.getContext('2d')!;
  private stillOf: {layout: CaptureLayout, density: number[]}|null = null;
  private colours = new ThemeColours();
  private width = 0;
  private readonly busy = new Float32Array(kBins);
  private readonly weight = new Float32Array(kBins);
  private dragFrom: number|null = null;
  private gapsOf: CaptureLayout|null = null;
  private allGaps: Gap[] = [];

  constructor(private readonly host: TimelineHost) {
    this.canvas.className = 'minimap';
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', 'Overview of the whole capture; drag to move the window');
    this.canvas.addEventListener('pointerdown', event => this.onDown(event));
    this.canvas.addEventListener('pointermove', event => this.onMove(event));
    this.canvas.addEventListener('pointerup', () => {
      this.dragFrom = null;
    });
  }

  themeChanged(): void {
    this.colours = new ThemeColours();
    this.stillOf = null;
  }

  resize(width: number): void {
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = this.still.width = Math.max(1, Math.round(width * scale));
    this.canvas.height = this.still.height = Math.round(kHeight * scale);
    this.stillOf = null;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${kHeight}px`;
    for (const ctx of [this.ctx, this.stillCtx]) ctx.setTransform(scale, 0, 0, scale, 0, 0);
  }

  // Adds what an answer tells about its stretch. Only answers that span much of the capture say enough about each bin.
  learn(tile: SpanTile): void {
    const {begin, end} = this.host.state.layout, size = (end - begin) / kBins;
    if (size <= 0 || tile.to - tile.from < (end - begin) * 0.2) return;
    this.stillOf = null;
    for (const row of tile.rows) {
      if (row.isCounter) continue;
      for (let i = 0; i < row.start.length; ++i) {
        if (row.depthOf[i] !== 0) continue;
        const from = (tile.timeOf(row, i) - begin) / size, to = from + tile.durationOf(row, i) / size;
        for (let b = Math.max(0, Math.floor(from)); b < Math.min(kBins, to); ++b) {
          this.busy[b] += Math.min(to, b + 1) - Math.max(from, b);
        }
      }
      const first = Math.max(0, Math.floor((tile.from - begin) / size)),
            last = Math.min(kBins, Math.ceil((tile.to - begin) / size));
      for (let b = first; b < last; ++b) ++this.weight[b];
    }
  }

  // Forgets everything, because the capture's length changed.
  forget(): void {
    this.stillOf = null;
    this.busy.fill(0);
    this.weight.fill(0);
  }

  paint(): void {
    const {ctx, colours, width} = this, {state} = this.host, {viewport, layout} = state;
    if (this.stillOf?.layout !== layout || this.stillOf.density !== state.density) this.paintStill();
    ctx.clearRect(0, 0, width, kHeight);
    ctx.drawImage(this.still, 0, 0, width, kHeight);
    ctx.fillStyle = colours.accent;
    for (const marker of state.markers) ctx.fillRect(this.x(marker.time), 0, 1.5, kHeight);
    const left = this.x(Math.max(layout.begin, viewport.from)), right = this.x(Math.min(layout.end, viewport.to));
    ctx.fillStyle = colours.background;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(0, 0, left, kHeight);
    ctx.fillRect(right, 0, width - right, kHeight);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 1;
    ctx.strokeRect(Math.max(0, left) + 0.5, 0.5, Math.max(2, right - left - 1), kHeight - 1);
  }

  private paintStill(): void {
    const {stillCtx: ctx, colours, width} = this, {layout, density} = this.host.state, step = width / kBins;
    this.stillOf = {layout, density};
    ctx.clearRect(0, 0, width, kHeight);
    ctx.fillStyle = colours.suspension;
    ctx.globalAlpha = 0.55;
    for (let b = 0; b < kBins; ++b) {
      if (this.weight[b] === 0) continue;
      const height = Math.min(1, this.busy[b] / this.weight[b]) * (kHeight - 10);
      ctx.fillRect(b * step, kHeight - 4 - height, Math.ceil(step), height);
    }
    ctx.globalAlpha = 1;
    this.paintMissing();
    this.paintDensity();
  }

  private x(time: number): number {
    const {begin, end} = this.host.state.layout;
    return (time - begin) / Math.max(1, end - begin) * this.width;
  }

  private paintMissing(): void {
    const {stillCtx: ctx, colours} = this;
    for (const gap of this.gaps()) {
      ctx.fillStyle = colours[gap.kind];
      ctx.fillRect(this.x(gap.from), kHeight - 3, Math.max(1.5, this.x(gap.to) - this.x(gap.from)), 3);
    }
  }

  // Of all streams, collected once a layout: there may be 10,000 streams.
  private gaps(): Gap[] {
    const {layout} = this.host.state;
    if (this.gapsOf !== layout) {
      this.gapsOf = layout;
      this.allGaps = layout.streams.flatMap(stream => stream.gaps).slice(0, kGapsMax);
    }
    return this.allGaps;
  }

  private paintDensity(): void {
    const {density} = this.host.state, {stillCtx: ctx, colours, width} = this;
    if (!density.length) return;
    const most = density.reduce((a, b) => Math.max(a, b), 1), step = width / density.length;
    ctx.fillStyle = colours.hit;
    density.forEach((count, i) => {
      if (count > 0) ctx.fillRect(i * step, 0, Math.max(1.5, step), 4 + 10 * Math.sqrt(count / most));
    });
  }

  private timeAt(event: PointerEvent): number {
    const {begin, end} = this.host.state.layout;
    return begin + (event.clientX - this.canvas.getBoundingClientRect().left) / this.width * (end - begin);
  }

  private onDown(event: PointerEvent): void {
    const {viewport} = this.host.state, time = this.timeAt(event);
    this.canvas.setPointerCapture(event.pointerId);
    if (time < viewport.from || time > viewport.to) {
      viewport.show(time - viewport.span / 2, time + viewport.span / 2);
      this.host.viewChanged();
    }
    this.dragFrom = time - viewport.from;
  }

  private onMove(event: PointerEvent): void {
    if (this.dragFrom === null) return;
    const {viewport} = this.host.state, from = this.timeAt(event) - this.dragFrom;
    viewport.show(from, from + viewport.span);
    this.host.viewChanged();
  }
}
