// SPDX-License-Identifier: Apache-2.0
import {firstAtLeast, selfTime, SpanTile} from '../model/span_tile';

import {kUnit} from './painter';
import {Stage} from './stage';
import {ChosenSpan, Pick, TimelineHost} from './timeline_host';
import {Tooltip} from './tooltip';

export const kSelect = 1, kPan = 2, kZoom = 3, kTime = 4;

const kClickPx = 4;
const kHitReachPx = 3;

// What the pointer does over the canvas, by the chosen tool: select (click a span, drag a box), pan, zoom into a range,
// measure a time. The wheel zooms with every tool; with ctrl or shift it pans, with alt it scrolls.
export class PointerTools {
  private downX = 0;
  private downY = 0;
  private isDown = false;
  private lastX = 0;
  private lastY = 0;
  private readonly tooltip: Tooltip;

  constructor(private readonly host: TimelineHost, private readonly stage: Stage) {
    this.tooltip = new Tooltip(host, stage);
    const box = stage.canvasBox;
    box.addEventListener('wheel', event => this.onWheel(event), {passive: false});
    box.addEventListener('pointerdown', event => this.onDown(event));
    box.addEventListener('pointermove', event => this.onMove(event));
    box.addEventListener('pointerup', event => this.onUp(event));
    box.addEventListener('pointercancel', () => this.cancel());
    box.addEventListener('pointerleave', () => this.leave());
    box.addEventListener('dblclick', event => this.onDouble(event));
  }

  // The time under the pointer, or in the middle of the window.
  get time(): number {
    const {viewport} = this.host.state, x = this.stage.overlay.hoverX;
    return x >= 0 ? viewport.timeAt(x, this.stage.width) : (viewport.from + viewport.to) / 2;
  }

  get fraction(): number {
    const x = this.stage.overlay.hoverX;
    return x >= 0 ? x / this.stage.width : 0.5;
  }

  cancel(): void {
    this.isDown = false;
    this.stage.overlay.drag = null;
    this.host.overlayChanged();
  }

  private onWheel(event: WheelEvent): void {
    event.preventDefault();
    const {viewport} = this.host.state, lines = event.deltaMode === 1 ? 16 : 1;
    const dx = event.deltaX * lines, dy = event.deltaY * lines;
    if (event.altKey) return this.stage.scrollByUnits(Math.sign(dy) * 3);
    if (event.ctrlKey || event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
      viewport.pan((Math.abs(dx) > Math.abs(dy) ? dx : dy) / this.stage.width);
    } else {
      const x = event.clientX - this.stage.canvasBox.getBoundingClientRect().left;
      viewport.zoom(Math.exp(Math.max(-1, Math.min(1, dy / 300))), x / this.stage.width);
    }
    this.tooltip.hide();
    this.host.viewChanged();
  }

  private place(event: MouseEvent): [number, number] {
    const box = this.stage.canvasBox.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  private onDown(event: PointerEvent): void {
    if (event.button > 1) return;
    const [x, y] = this.place(event), {viewport, tool} = this.host.state;
    this.stage.canvasBox.setPointerCapture(event.pointerId);
    this.stage.canvasBox.focus({preventScroll: true});
    this.isDown = true;
    this.downX = this.lastX = x;
    this.downY = this.lastY = y;
    this.tooltip.hide();
    if (this.pans(event, tool)) return;
    const time = viewport.timeAt(x, this.stage.width), unit = Math.floor(y / kUnit);
    this.stage.overlay.drag = {
      kind: tool === kSelect ? 'box'
          : tool === kZoom   ? 'zoom'
                             : 'range',
      from: time,
      to: time,
      firstUnit: unit,
      lastUnit: unit
    };
  }

  private pans(event: PointerEvent, tool: number): boolean {
    return tool === kPan || event.button === 1 || (event.buttons & 4) !== 0;
  }

  private onMove(event: PointerEvent): void {
    const [x, y] = this.place(event), {overlay} = this.stage, {viewport, tool} = this.host.state;
    overlay.hoverX = x;
    if (!this.isDown) {
      this.hover(x, y, event);
    } else if (this.pans(event, tool)) {
      viewport.pan((this.lastX - x) / this.stage.width);
      const units = Math.trunc((this.lastY - y) / kUnit);
      if (units !== 0) {
        this.stage.scrollByUnits(units);
        this.lastY -= units * kUnit;
      }
      this.lastX = x;
      return this.host.viewChanged();
    } else if (overlay.drag) {
      overlay.drag.to = viewport.timeAt(Math.max(0, Math.min(this.stage.width, x)), this.stage.width);
      const units = [Math.floor(this.downY / kUnit), Math.floor(y / kUnit)].sort((a, b) => a - b);
      overlay.drag.firstUnit = Math.max(0, units[0]);
      overlay.drag.lastUnit = units[1];
    }
    this.host.overlayChanged();
  }

  private onUp(event: PointerEvent): void {
    if (!this.isDown) return;
    const [x, y] = this.place(event), {drag} = this.stage.overlay, {state} = this.host;
    const isClick = Math.abs(x - this.downX) < kClickPx && Math.abs(y - this.downY) < kClickPx;
    this.cancel();
    if (!drag || isClick) {
      if (isClick && event.button === 0) this.click(x, y, event.ctrlKey || event.metaKey, event.shiftKey);
      return;
    }
    const from = Math.min(drag.from, drag.to), to = Math.max(drag.from, drag.to);
    if (drag.kind === 'zoom') {
      state.viewport.show(from, to);
      return this.host.viewChanged();
    }
    const isAll = drag.kind === 'range';
    this.host.chooseBox(
        {from, to, streams: isAll ? this.shownStreams() : this.streamsIn(drag.firstUnit, drag.lastUnit)});
  }

  private onDouble(event: MouseEvent): void {
    const [x, y] = this.place(event), span = this.spanAt(x, y), {viewport} = this.host.state;
    if (!span) return;
    const margin = Math.max(20, (span.to - span.from) * 0.25);
    viewport.show(span.from - margin, span.to + margin);
    this.host.viewChanged();
  }

  private leave(): void {
    const {overlay} = this.stage;
    overlay.hoverX = overlay.hovered = -1;
    this.tooltip.hide();
    this.host.overlayChanged();
  }

  private click(x: number, y: number, extend: boolean, stretch: boolean): void {
    const span = this.spanAt(x, y), {state} = this.host;
    if (!span) {
      this.host.chooseSpan(null);
      return this.host.chooseBox(null);
    }
    const before = state.span;
    if (extend) {
      // The span that is chosen begins the selection, as a person sees it as selected.
      const isFirst = !state.picks.length && before && before.to > before.from &&
          (before.stream !== span.stream || before.row !== span.row || before.from !== span.from);
      return this.host.pick(isFirst ? [this.pickOf(before!), this.pickOf(span)] : [this.pickOf(span)]);
    }
    if (stretch && before) {
      return this.host.chooseBox({
        from: Math.min(before.from, span.from),
        to: Math.max(before.to, span.to),
        streams: [...new Set([before.stream, span.stream])]
      });
    }
    if (state.picks.length) this.host.chooseBox(null);
    this.host.chooseSpan(span);
  }

  private pickOf(span: ChosenSpan): Pick {
    const tile = this.stage.tileOf(span.stream),
          row = tile?.byStream.get(span.stream)?.find(other => other.row === span.row);
    const duration = span.to - span.from;
    const self = tile && row ? selfTime(tile, row, span.from, span.to, span.depth) : duration;
    return {stream: span.stream, row: span.row, name: span.name, from: span.from, duration, self};
  }

  private hover(x: number, y: number, event: PointerEvent): void {
    const {painter, overlay} = this.stage, unit = Math.floor(y / kUnit);
    overlay.hovered = painter.list.hit(x * painter.scale, unit, kHitReachPx);
    this.stage.canvasBox.style.cursor = this.host.state.tool === kPan ? 'grab'
        : this.host.state.tool === kZoom                              ? 'zoom-in'
        : this.host.state.tool === kTime                              ? 'col-resize'
        : overlay.hovered >= 0                                        ? 'pointer'
                                                                      : 'default';
    const position = this.stage.visible.at(unit), track = position >= 0 ? this.stage.visible.tracks[position] : null;
    if (overlay.hovered >= 0)
      this.tooltip.showSpan(this.spanOf(overlay.hovered), event.clientX, event.clientY);
    else if (track && track.stream >= 0)
      this.tooltip.showPlace(
          track, this.time, this.counterAt(track.stream, track.row?.row ?? -1), event.clientX, event.clientY);
    else
      this.tooltip.hide();
  }

  private counterAt(stream: number, row: number): {value: number, unit: string}|null {
    const tile = this.stage.tileOf(stream), found = tile?.byStream.get(stream)?.find(other => other.row === row);
    if (!tile || !found?.isCounter) return null;
    const i = firstAtLeast(found.start, (this.time - tile.from) / tile.unitNs) - 1;
    return i >= 0 ? {value: found.value[i], unit: found.unit} : null;
  }

  private spanAt(x: number, y: number): ChosenSpan|null {
    const {painter} = this.stage, i = painter.list.hit(x * painter.scale, Math.floor(y / kUnit), kHitReachPx);
    return i >= 0 ? this.spanOf(i) : null;
  }

  // A rectangle of the painter's list as a span.
  spanOf(index: number): ChosenSpan {
    const {list} = this.stage.painter, {names} = this.host.state, {tile, row} = list.rows[list.row[index]],
          item = list.item[index];
    return chosenSpan(tile, row, item, names.names, names.categories, names.categoryOf);
  }

  private streamsIn(first: number, last: number): number[] {
    const {visible} = this.stage, streams = new Set<number>();
    for (let i = 0; i < visible.count; ++i) {
      const track = visible.tracks[i];
      if (track.stream >= 0 && visible.unit[i] <= last && visible.unit[i] + track.units > first)
        streams.add(track.stream);
    }
    return [...streams];
  }

  shownStreams(): number[] {
    const {tree} = this.host.state;
    return [...new Set(
        [...tree.pinnedTracks, ...tree.tracks].filter(track => track.stream >= 0).map(track => track.stream))];
  }
}

function chosenSpan(
    tile: SpanTile, row: SpanTile['rows'][number], item: number, names: string[], categories: string[],
    categoryOf: number[]): ChosenSpan {
  const from = tile.timeOf(row, item), name = tile.nameNumbers[row.nameOf[item]];
  return {
    stream: row.stream,
    row: row.row,
    name: names[name] ?? '',
    category: categories[categoryOf[name]] ?? '',
    from,
    to: from + tile.durationOf(row, item),
    count: row.count[item],
    flags: row.flags[item],
    depth: row.depthOf[item]
  };
}
