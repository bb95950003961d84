// SPDX-License-Identifier: Apache-2.0
import {axisStep, formatAxisTime} from '../model/text_format';

import {ThemeColours} from './theme_colours';
import {TimelineState} from './timeline_state';

const kHeight = 24;
const kFont = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// Times above the canvas, relative to the capture's begin, with the markers' names.
export class Ruler {
  readonly canvas = document.createElement('canvas');
  private readonly ctx = this.canvas.getContext('2d')!;
  private colours = new ThemeColours();
  private width = 0;

  constructor(private readonly state: TimelineState) {
    this.canvas.className = 'ruler';
    this.canvas.setAttribute('aria-hidden', 'true');
  }

  themeChanged(): void {
    this.colours = new ThemeColours();
  }

  resize(width: number): void {
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.max(1, Math.round(width * scale));
    this.canvas.height = Math.round(kHeight * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${kHeight}px`;
    this.ctx.setTransform(scale, 0, 0, scale, 0, 0);
  }

  paint(): void {
    const {ctx, colours, width} = this, {viewport, markers, layout} = this.state;
    ctx.clearRect(0, 0, width, kHeight);
    ctx.font = kFont;
    ctx.textBaseline = 'middle';
    // Counted, because adding a small step to a very large time may not change it.
    const step = axisStep(viewport.span / width, 110), first = Math.ceil(viewport.from / step - 1);
    for (let i = 0, n = Math.ceil(viewport.span / step) + 1; i <= n; ++i) {
      const t = (first + i) * step, x = Math.round(viewport.xOf(t, width));
      ctx.fillStyle = colours.faint;
      ctx.fillRect(x, kHeight - 8, 1, 8);
      for (let k = 1; k < 5; ++k) ctx.fillRect(Math.round(viewport.xOf(t + step * k / 5, width)), kHeight - 4, 1, 4);
      ctx.fillStyle = colours.text;
      if (x >= 0 && x < width - 50) ctx.fillText(formatAxisTime(t, step), x + 4, kHeight - 13);
    }
    for (const moment of layout.moments) this.paintMarker(moment, colours.faint);
    for (const marker of markers) this.paintMarker(marker, colours.accent);
  }

  private paintMarker({name, time}: {name: string, time: number}, colour: string): void {
    const {ctx, colours, width} = this, x = Math.round(this.state.viewport.xOf(time, width));
    if (x < 0 || x > width) return;
    const text = name.slice(0, 30), w = ctx.measureText(text).width + 8;
    // At the right end the label is before its line, or it would be cut.
    const left = x + w > width ? x + 1 - w : x;
    ctx.fillStyle = colour;
    ctx.fillRect(left, 3, w, 15);
    ctx.fillRect(x, 3, 1, kHeight);
    ctx.fillStyle = colours.background;
    ctx.fillText(text, left + 4, 11);
  }
}
