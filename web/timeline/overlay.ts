// SPDX-License-Identifier: Apache-2.0
import {EventLink, LinkedEvent} from '../api/api_types';
import {PlacedVerdict, ratioText} from '../model/insight';
import {arrowBetween} from '../model/link_arrows';
import {firstAtLeast} from '../model/span_tile';
import {formatDuration} from '../model/text_format';

import {kUnit, Painter} from './painter';
import {ThemeColours} from './theme_colours';
import {TimelineState} from './timeline_state';
import {VisibleTracks} from './visible_tracks';

// A stretch that is being drawn with the pointer. Units are of the screen; first > last: all of them.
export interface Drag {
  kind: 'box'|'range'|'zoom';
  from: number;
  to: number;
  firstUnit: number;
  lastUnit: number;
}

const kFont = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

// What lies over the spans and changes without them: the pointer's line, what is chosen, hits, markers, links. A canvas
// of its own, so that moving the pointer does not draw the spans again.
export class Overlay {
  hoverX = -1;
  hovered = -1;  // in the painter's list
  drag: Drag|null = null;
  private readonly ctx: CanvasRenderingContext2D;
  private colours = new ThemeColours();
  private width = 0;
  private height = 0;

  constructor(
      readonly canvas: HTMLCanvasElement, private readonly state: TimelineState, private readonly painter: Painter,
      private readonly visible: VisibleTracks) {
    this.ctx = canvas.getContext('2d')!;
  }

  themeChanged(): void {
    this.colours = new ThemeColours();
  }

  resize(cssWidth: number, cssHeight: number): void {
    const scale = window.devicePixelRatio || 1;
    this.width = cssWidth;
    this.height = cssHeight;
    this.canvas.width = Math.max(1, Math.round(cssWidth * scale));
    this.canvas.height = Math.max(1, Math.round(cssHeight * scale));
    this.canvas.style.width = `${cssWidth}px`;
    this.canvas.style.height = `${cssHeight}px`;
    this.ctx.setTransform(scale, 0, 0, scale, 0, 0);
  }

  paint(): void {
    const {ctx, colours} = this;
    ctx.clearRect(0, 0, this.width, this.height);
    ctx.font = kFont;
    this.paintVerdicts();
    this.paintHits();
    this.paintBox();
    this.paintPicks();
    this.paintMarkers();
    this.paintLinks();
    this.paintChain();
    this.paintChosen();
    if (this.hovered >= 0) this.outline(this.hovered, colours.text, 1);
    if (this.drag) this.paintDrag(this.drag);
    if (this.hoverX >= 0 && !this.drag) {
      ctx.fillStyle = colours.faint;
      ctx.globalAlpha = 0.6;
      ctx.fillRect(Math.round(this.hoverX), 0, 1, this.height);
      ctx.globalAlpha = 1;
    }
  }

  private x(time: number): number {
    return this.state.viewport.xOf(time, this.width);
  }

  // The unit of the screen where this row is shown, or -1 if it is not.
  unitOf(stream: number, row: number, depth = 0): number {
    const {visible} = this;
    for (let i = 0; i < visible.count; ++i) {
      const track = visible.tracks[i];
      if (track.stream !== stream) continue;
      if (track.kind === 'rank' && !track.expanded) return visible.unit[i];
      if (track.kind === 'row' && track.row?.row === row) return visible.unit[i] + Math.min(depth, track.units - 1);
    }
    return -1;
  }

  // The nesting level of the span of this name that begins here, from what is drawn; `otherwise` if it is not drawn.
  private depthOf(stream: number, row: number, time: number, name: string, otherwise = 0): number {
    const {list} = this.painter, {names} = this.state.names;
    for (let r = 0; r < list.rowCount; ++r) {
      const frame = list.rows[r];
      if (frame.flat || frame.row.stream !== stream || frame.row.row !== row || frame.row.isCounter) continue;
      const {start, nameOf, depthOf} = frame.row, unit = frame.tile.unitNs;
      for (let i = firstAtLeast(start, (time - frame.tile.from) / unit - 1);
           i < start.length && start[i] * unit <= time - frame.tile.from + unit; ++i) {
        if (names[frame.tile.nameNumbers[nameOf[i]]] === name) return depthOf[i];
      }
    }
    return otherwise;
  }

  private outline(index: number, colour: string, width: number): void {
    const {list, scale} = this.painter, {ctx} = this;
    if (index >= list.count) return;
    ctx.strokeStyle = colour;
    ctx.lineWidth = width;
    ctx.strokeRect(
        list.begin[index] / scale + 0.5, list.strip[index] * kUnit + 0.5,
        Math.max(1, (list.end[index] - list.begin[index]) / scale - 1), kUnit - 2);
  }

  // The chosen span, with the clock's bound as a whisker at both of its ends.
  private paintChosen(): void {
    const {span, layout} = this.state, {ctx, colours} = this;
    if (!span) return;
    // What was chosen by a link or a hit has no depth yet.
    const depth = span.depth || this.depthOf(span.stream, span.row, span.from, span.name);
    const unit = this.unitOf(span.stream, span.row, depth);
    if (unit < 0 || unit * kUnit > this.height) return;
    const left = this.x(span.from), right = Math.max(left + 2, this.x(span.to)), y = unit * kUnit;
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 2;
    ctx.strokeRect(Math.max(-4, left), y, Math.min(this.width + 8, right) - Math.max(-4, left), kUnit - 1);
    const stream = layout.stream(span.stream);
    if (!stream?.boundKnown) return;
    const bound = stream.boundNs / this.state.viewport.span * this.width;
    if (bound < 1.5) return;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    for (const x of [left, right]) {
      const middle = y + kUnit / 2;
      ctx.moveTo(x - bound, middle);
      ctx.lineTo(x + bound, middle);
      for (const end of [x - bound, x + bound]) {
        ctx.moveTo(end, middle - 4);
        ctx.lineTo(end, middle + 4);
      }
    }
    ctx.stroke();
  }

  // The chosen event's links. Those of a collective are many and say less, so that they are pale.
  private paintLinks(): void {
    const {span, links} = this.state;
    if (!span || !links) return;
    const own = {...span, depth: span.depth || this.depthOf(span.stream, span.row, span.from, span.name)};
    for (const link of links.links) this.paintLink(own, link, link.kind === 'collective' ? 0.4 : 1);
  }

  // The dependency chain: from each event to the next in a thicker line.
  private paintChain(): void {
    const {links, base} = this.state;
    if (!links?.chain.length) return;
    const places = new Map<string, LinkedEvent>([[links.event.id, links.event]]);
    for (const step of links.chain) {
      const before = places.get(step.from);
      places.set(step.id, step);
      if (!before) continue;
      const from = base.relative(before.start_ns), to = base.relative(before.end_ns),
            depth = this.depthOf(before.stream, before.row, from, before.name, before.depth);
      this.paintLink({...before, from, to, depth}, step, 1, true);
    }
  }

  // An arrow between an event and one that it is linked to, if both of their rows are on the screen.
  private paintLink(
      own: {stream: number, row: number, from: number, to: number, depth: number}, link: EventLink, alpha: number,
      isChain = false): void {
    const {ctx, colours} = this, {base} = this.state;
    const from = base.relative(link.start_ns), to = base.relative(link.end_ns);
    const otherUnit =
        this.unitOf(link.stream, link.row, this.depthOf(link.stream, link.row, from, link.name, link.depth));
    const ownUnit = this.unitOf(own.stream, own.row, own.depth);
    if (ownUnit < 0 || otherUnit < 0) return;
    const arrow = arrowBetween(own, {from, to}, link.direction, link.kind);
    const tail = this.x(arrow.isOwnHead ? arrow.other : arrow.own),
          head = this.x(arrow.isOwnHead ? arrow.own : arrow.other);
    if ((tail < -200 && head < -200) || (tail > this.width + 200 && head > this.width + 200)) return;
    const tailY = ((arrow.isOwnHead ? otherUnit : ownUnit) + 0.5) * kUnit,
          headY = ((arrow.isOwnHead ? ownUnit : otherUnit) + 0.5) * kUnit;
    const isBack = head < tail, bend = Math.min(60, Math.max(16, Math.abs(head - tail) / 2)) * (isBack ? -1 : 1);
    ctx.strokeStyle = ctx.fillStyle = isChain ? colours.hit : colours.accent;
    ctx.lineWidth = isChain ? 2.5 : 1.5;
    ctx.globalAlpha = alpha;
    ctx.beginPath();
    ctx.moveTo(tail, tailY);
    ctx.bezierCurveTo(tail + bend, tailY, head - bend, headY, head, headY);
    ctx.stroke();
    ctx.beginPath();
    if (arrow.hasHead) {
      const length = isBack ? 8 : -8;
      ctx.moveTo(head, headY);
      ctx.lineTo(head + length, headY - 4);
      ctx.lineTo(head + length, headY + 4);
    } else {
      ctx.arc(head, headY, 2.5, 0, 7);
    }
    ctx.fill();
    ctx.globalAlpha = 1;
  }

  // Verdicts as bands over the rows of the ranks that they name, from since when to until when, with their kind.
  private paintVerdicts(): void {
    const {insight, bands} = this.state, {visible} = this;
    if (!insight?.verdicts.length || !bands) return;
    for (let i = 0; i < visible.count; ++i) {
      const track = visible.tracks[i];
      if (track.stream < 0 || !insight.of(track.stream).length) continue;
      const isFirst = i === 0 || visible.tracks[i - 1].stream !== track.stream, top = visible.unit[i] * kUnit;
      insight.of(track.stream).forEach((verdict, n) => this.paintBand(verdict, n, top, track.units * kUnit, isFirst));
    }
  }

  private paintBand(verdict: PlacedVerdict, number: number, top: number, height: number, isFirst: boolean): void {
    const left = Math.max(0, this.x(verdict.from)), right = Math.min(this.width, this.x(verdict.to));
    if (right < 0 || left > this.width) return;
    const {ctx, colours} = this, isChosen = this.state.insight?.verdicts[this.state.verdict] === verdict;
    ctx.fillStyle = verdict.tone === 'hang' ? colours.loss : verdict.tone === 'slow' ? colours.verdict : colours.faint;
    ctx.globalAlpha = isFirst ? 0.16 : 0.06;  // the spans below stay as they are
    ctx.fillRect(left, top, Math.max(2, right - left), height);
    ctx.globalAlpha = 1;
    for (const x of [left, right - 1]) ctx.fillRect(x, top, 1, height);
    if (isFirst) ctx.fillRect(left, top + kUnit - (isChosen ? 3 : 2), Math.max(2, right - left), isChosen ? 3 : 2);
    if (!isFirst || number > 0) return;  // others are in the panel; their text would lie over this one
    const {ratio} = verdict.message, text = ratio ? `${verdict.kind} ${ratioText(ratio)}` : verdict.kind,
          w = ctx.measureText(text).width + 8;
    const x = Math.max(0, Math.min(left, this.width - w));
    ctx.fillRect(x, top, w, kUnit - 2);
    ctx.fillStyle = colours.background;
    ctx.textBaseline = 'middle';
    ctx.fillText(text, x + 4, top + kUnit / 2 - 0.5);
  }

  private paintHits(): void {
    const {hits, base, hit} = this.state, {ctx, colours} = this;
    ctx.strokeStyle = colours.hit;
    hits.forEach((entry, i) => {
      const from = base.relative(entry.start_ns),
            unit = this.unitOf(entry.stream, entry.row, this.depthOf(entry.stream, entry.row, from, entry.name));
      if (unit < 0) return;
      const left = this.x(from), right = Math.max(left + 3, this.x(from + Number(entry.duration_ns)));
      if (right < 0 || left > this.width) return;
      ctx.lineWidth = i === hit ? 2.5 : 1.2;
      ctx.strokeRect(
          Math.max(-3, left) + 0.5, unit * kUnit + 0.5, Math.min(this.width + 6, right) - Math.max(-3, left),
          kUnit - 2);
    });
  }

  private paintBox(): void {
    const {box} = this.state, {ctx, colours, visible} = this;
    if (!box) return;
    const left = Math.max(0, this.x(box.from)), right = Math.min(this.width, this.x(box.to));
    if (right <= left) return;
    const streams = new Set(box.streams);
    ctx.fillStyle = colours.accent;
    for (let i = 0; i < visible.count; ++i) {
      if (!streams.has(visible.tracks[i].stream)) continue;
      ctx.globalAlpha = 0.13;
      ctx.fillRect(left, visible.unit[i] * kUnit, right - left, visible.tracks[i].units * kUnit);
    }
    ctx.globalAlpha = 0.9;
    ctx.fillRect(left, 0, 1, this.height);
    ctx.fillRect(right - 1, 0, 1, this.height);
    ctx.globalAlpha = 1;
  }

  // Spans that were added to the selection with Ctrl.
  private paintPicks(): void {
    const {ctx, colours} = this;
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 2;
    for (const pick of this.state.picks) {
      const unit = this.unitOf(pick.stream, pick.row, this.depthOf(pick.stream, pick.row, pick.from, pick.name));
      if (unit < 0) continue;
      const left = Math.max(-4, this.x(pick.from)), right = Math.min(this.width + 4, this.x(pick.from + pick.duration));
      if (right >= 0 && left <= this.width) ctx.strokeRect(left, unit * kUnit, Math.max(2, right - left), kUnit - 1);
    }
  }

  private paintMarkers(): void {
    const {ctx, colours} = this;
    ctx.fillStyle = colours.accent;
    for (const marker of this.state.markers) {
      const x = Math.round(this.x(marker.time));
      if (x < 0 || x > this.width) continue;
      for (let y = 0; y < this.height; y += 6) ctx.fillRect(x, y, 1, 3);
    }
  }

  private paintDrag(drag: Drag): void {
    const {ctx, colours} = this, left = this.x(Math.min(drag.from, drag.to)),
                right = this.x(Math.max(drag.from, drag.to));
    const top = drag.kind === 'box' ? drag.firstUnit * kUnit : 0;
    const height = drag.kind === 'box' ? (drag.lastUnit - drag.firstUnit + 1) * kUnit : this.height;
    ctx.fillStyle = colours.accent;
    ctx.globalAlpha = 0.15;
    ctx.fillRect(left, top, right - left, height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colours.accent;
    ctx.lineWidth = 1;
    ctx.strokeRect(left + 0.5, top + 0.5, Math.max(1, right - left - 1), height - 1);
    const text = formatDuration(Math.abs(drag.to - drag.from)), width = ctx.measureText(text).width + 10;
    const x = Math.max(2, Math.min(this.width - width - 2, (left + right) / 2 - width / 2)), y = Math.max(2, top + 3);
    ctx.fillStyle = colours.accent;
    ctx.fillRect(x, y, width, 17);
    ctx.fillStyle = colours.background;
    ctx.textBaseline = 'middle';
    ctx.fillText(text, x + 5, y + 9);
  }
}
