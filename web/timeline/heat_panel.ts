// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {HeatGrid, reduceRows} from '../model/heat_grid';
import {hslToRgb} from '../model/palette';
import {axisStep, formatAxisTime, formatDuration} from '../model/text_format';
import {button, element, notice, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {TimelineHost} from './timeline_host';

const kColumns = 400, kAxisPx = 46, kCellMinPx = 2;
const kMetrics: [string, string, string][] = [
  ['busy', 'Busy share', 'share of the time in which the rank executes'],
  ['events', 'Events', 'events that begin in a column'],
  ['wait', 'Collective wait', 'share of time in collectives and barriers; who waits least is late'],
  ['late', 'Lateness', 'how much later than the first rank it enters a collective'],
  ['step', 'Step time', 'length of the rank’s step; colour is its difference to the median'],
];

// Ranks x time (or steps) as a map of colours. A click goes to that rank and time. Where the difference is below the
// clock's bound the cell is grey: it means nothing.
export class HeatPanel implements Panel {
  readonly name = 'heat';
  readonly title = 'Heat map';
  readonly element = element('div', {class: 'panel heat'});
  private readonly canvas = element('canvas', {
    class: 'heat-canvas',
    tabindex: '0',
    role: 'application',
    'aria-label': 'Heat map: arrows move, Enter goes to the cell'
  });
  private readonly box = element('div', {class: 'heat-box'});
  private readonly readout = element('div', {class: 'heat-readout', role: 'status', 'aria-live': 'polite'});
  private readonly legend = element('span', {class: 'heat-legend'});
  private readonly metric = element('select', {'aria-label': 'Metric'});
  private readonly by = element('select', {'aria-label': 'Columns'});
  private grid: HeatGrid|null = null;
  private baseline = new Float32Array(0);
  private winner = new Int32Array(0);
  private rows = 0;
  private loaded = '';
  private cell: [number, number]|null = null;  // row and column of the reduced map
  private abort: AbortController|null = null;

  constructor(private readonly host: TimelineHost) {
    kMetrics.forEach(([value, label]) => this.metric.appendChild(element('option', {value}, label)));
    this.by.append(element('option', {value: 'time'}, 'by time'), element('option', {value: 'step'}, 'by step'));
    this.metric.addEventListener('change', () => this.choose());
    this.by.addEventListener('change', () => this.choose());
    this.canvas.addEventListener('pointermove', event => this.pointAt(event));
    this.canvas.addEventListener('click', () => this.go());
    this.canvas.addEventListener('keydown', event => this.onKey(event));
    new ResizeObserver(() => this.paint()).observe(this.box);
    document.addEventListener('themechange', () => this.paint());
    this.element.append(
        element(
            'div', {class: 'panel-head'}, this.metric, this.by, button('Of the window', () => void this.load(true)),
            button('Of the whole capture', () => void this.load(false)), this.legend, this.readout),
        this.box);
  }

  update(): void {
    const {state} = this.host;
    this.metric.value = state.metric;
    this.by.value = state.by;
    const key = `${state.metric} ${state.by} ${state.layout.version}`;
    if (this.loaded !== key) void this.load(false);
  }

  private choose(): void {
    const {state} = this.host;
    state.metric = this.metric.value;
    state.by = this.by.value;
    this.host.viewChanged();
    this.update();
  }

  private async load(ofWindow: boolean): Promise<void> {
    const {state, api} = this.host, {layout, viewport, base} = state;
    this.loaded = `${state.metric} ${state.by} ${layout.version}`;
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    if (!this.grid) replaceChildren(this.box, notice('loading', 'Computing the heat map'));
    try {
      const from = ofWindow ? Math.max(layout.begin, viewport.from) : layout.begin,
            to = ofWindow ? Math.min(layout.end + 1, viewport.to) : layout.end + 1;
      const answer = await api.heat(
          state.captureId, {
            metric: state.metric,
            from: base.absolute(from),
            to: base.absolute(to),
            columns: kColumns,
            by: state.by === 'step' ? 'step' : undefined
          },
          abort.signal);
      this.grid = new HeatGrid(answer, base);
      this.baseline = this.grid.baseline();
      this.cell = null;
      if (this.grid.rows.length && this.grid.columns)
        replaceChildren(this.box, this.canvas);
      else
        replaceChildren(
            this.box,
            notice(
                'empty', 'There is nothing to compare',
                state.metric === 'step' || state.by === 'step'
                    ? 'The capture has no steps; choose another metric, by time.'
                    : 'No rank has events of this kind.'));
      this.paint();
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      this.grid = null;
      replaceChildren(
          this.box,
          notice(
              'error', `The heat map cannot be computed: ${message}`, hint,
              button('Try again', () => void this.load(ofWindow))));
    }
  }

  private paint(): void {
    const {grid, canvas, box} = this;
    if (!grid || !grid.rows.length || !canvas.isConnected) return;
    const width = Math.max(100, box.clientWidth), height = Math.max(40, box.clientHeight),
          scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const reduced = reduceRows(grid, this.baseline, Math.floor((height - 18) / kCellMinPx));
    this.winner = reduced.winner;
    this.rows = reduced.rows;
    const ctx = canvas.getContext('2d')!, style = getComputedStyle(document.documentElement);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.fillStyle = style.getPropertyValue('--lane');
    ctx.fillRect(0, 0, width, height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.makeImage(grid), kAxisPx, 0, width - kAxisPx, height - 18);
    this.paintAxes(ctx, grid, width, height, style.getPropertyValue('--text-dim'));
    this.paintCell(ctx, grid, width, height, style.getPropertyValue('--accent'));
    this.paintWindow(ctx, grid, width, height, style.getPropertyValue('--accent'));
  }

  private makeImage(grid: HeatGrid): HTMLCanvasElement {
    const image = document.createElement('canvas');
    image.width = grid.columns;
    image.height = this.rows;
    const ctx = image.getContext('2d')!, data = ctx.createImageData(grid.columns, this.rows),
          dark = document.documentElement.dataset.theme === 'dark';
    const [least, most] = this.range(grid);
    for (let i = 0; i < this.winner.length; ++i) {
      const row = this.winner[i], column = i % grid.columns;
      if (row < 0) continue;
      const share = (grid.at(row, column) - this.baseline[column] - least) / (most - least);
      const [r, g, b] = grid.isWithinBound(row, column, this.baseline)
          ? (dark ? [58, 61, 66] : [205, 207, 210])
          : heatColour(share, dark, grid.metric === 'step');
      data.data.set([r, g, b, 255], i * 4);
    }
    ctx.putImageData(data, 0, 0);
    this.legend.textContent =
        `${kMetrics.find(metric => metric[0] === grid.metric)?.[2] ?? ''}; ${this.text(least)} to ${this.text(most)}` +
        (grid.unit === 'ns' ? '; grey: below the clocks’ bound' : '');
    return image;
  }

  // The ends of the scale: percentiles of the differences, so that one outlier does not make the rest look alike.
  // Shares do not begin at 0, because all ranks of a job are about as busy.
  private range(grid: HeatGrid): [number, number] {
    const values: number[] = [];
    for (let i = 0; i < this.winner.length; ++i) {
      if (this.winner[i] >= 0)
        values.push(Math.abs(grid.at(this.winner[i], i % grid.columns) - this.baseline[i % grid.columns]));
    }
    values.sort((a, b) => a - b);
    const most = values[Math.floor((values.length - 1) * 0.998)] || 1;
    const least = grid.unit === 'share' ? values[Math.floor((values.length - 1) * 0.002)] ?? 0 : 0;
    return least < most ? [least, most] : [0, most];
  }

  private text(value: number): string {
    const {grid} = this;
    if (grid?.unit === 'share') return `${Math.round(value * 100)} %`;
    return grid?.unit === 'ns' ? formatDuration(value) : String(Number(value.toPrecision(3)));
  }

  private paintAxes(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    ctx.fillStyle = colour;
    ctx.font = '11px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    const bottom = height - 18, labels = Math.max(1, Math.floor(bottom / 18)),
          each = Math.max(1, Math.ceil(grid.rows.length / labels));
    for (let r = 0; r < grid.rows.length; r += each) {
      ctx.fillText(
          grid.rows[r].gid === null ? '–' : String(grid.rows[r].gid), 4,
          Math.max(7, Math.min(bottom - 6, (r + 0.5) / grid.rows.length * bottom)));
    }
    // Columns are stretches of time or steps; either way labels are at round numbers.
    const from = grid.steps ? 0 : grid.from, span = grid.steps ? grid.columns : grid.to - grid.from,
          apart = axisStep(span / (width - kAxisPx), 100);
    for (let value = Math.ceil(from / apart) * apart; value < from + span; value += apart) {
      const x = kAxisPx + (value - from) / span * (width - kAxisPx);
      ctx.fillRect(Math.round(x), bottom, 1, 4);
      if (x < width - 60)
        ctx.fillText(
            grid.steps ? `step ${grid.steps[value] ?? value}` : formatAxisTime(value, apart), x + 4, height - 8);
    }
  }

  private paintCell(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    if (!this.cell) return;
    const [row, column] = this.cell, w = (width - kAxisPx) / grid.columns, h = (height - 18) / this.rows;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.strokeRect(kAxisPx + column * w - 1, row * h - 1, Math.max(4, w + 2), Math.max(4, h + 2));
  }

  private paintWindow(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    if (grid.steps) return;
    const {viewport} = this.host.state,
          x = (time: number): number =>
              kAxisPx + Math.max(0, Math.min(1, (time - grid.from) / (grid.to - grid.from))) * (width - kAxisPx);
    ctx.fillStyle = colour;
    ctx.fillRect(x(viewport.from), height - 18, Math.max(2, x(viewport.to) - x(viewport.from)), 2);
  }

  private pointAt(event: PointerEvent): void {
    const {grid} = this, box = this.canvas.getBoundingClientRect();
    if (!grid) return;
    const column = Math.floor((event.clientX - box.left - kAxisPx) / (box.width - kAxisPx) * grid.columns);
    const row = Math.floor((event.clientY - box.top) / (box.height - 18) * this.rows);
    this.setCell(row, column);
  }

  private setCell(row: number, column: number): void {
    const {grid} = this;
    if (!grid || row < 0 || row >= this.rows || column < 0 || column >= grid.columns) return;
    this.cell = [row, column];
    const winner = this.winner[row * grid.columns + column],
          at = grid.steps ? `step ${grid.steps[column] ?? column}` : formatDuration(this.timeOf(column));
    if (winner < 0)
      this.readout.textContent = `${at}: nothing is known`;
    else {
      const value = grid.at(winner, column),
            difference =
                grid.metric === 'step' ? ` (${this.text(value - this.baseline[column])} against the median)` : '';
      this.readout.textContent =
          `${this.host.state.streamLabel(grid.rows[winner].stream)} · ${at}: ${this.text(value)}${difference}` +
          (grid.isWithinBound(winner, column, this.baseline)
               ? `, below the clock’s bound of ±${formatDuration(grid.rows[winner].boundNs)}`
               : '');
    }
    this.paint();
  }

  private timeOf(column: number): number {
    const {grid} = this;
    return grid ? grid.from + (column + 0.5) / grid.columns * (grid.to - grid.from) : 0;
  }

  // Steps have no place in time in the answer, so that a click on one goes to the rank alone.
  private go(): void {
    const {grid, cell, host} = this;
    if (!grid || !cell) return;
    const [row, column] = cell, winner = this.winner[row * grid.columns + column];
    const stream = grid.rows[winner >= 0 ? winner : Math.floor(row / this.rows * grid.rows.length)].stream;
    host.state.tree.expanded.add(stream);
    host.tracksChanged();
    const {viewport} = host.state;
    if (grid.steps) return host.reveal(stream, -1, viewport.from, viewport.from);
    const time = this.timeOf(column), half = (grid.to - grid.from) / grid.columns * 2;
    viewport.show(time - half, time + half);
    host.reveal(stream, -1, time, time);
  }

  private onKey(event: KeyboardEvent): void {
    const [row, column] = this.cell ?? [0, 0];
    if (event.key === 'ArrowUp')
      this.setCell(row - 1, column);
    else if (event.key === 'ArrowDown')
      this.setCell(row + 1, column);
    else if (event.key === 'ArrowLeft')
      this.setCell(row, column - 1);
    else if (event.key === 'ArrowRight')
      this.setCell(row, column + 1);
    else if (event.key === 'Enter')
      this.go();
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// One hue from faint to strong. `signed`: what is above the baseline is orange, what is below is blue.
function heatColour(share: number, dark: boolean, signed: boolean): [number, number, number] {
  const s = Math.max(-1, Math.min(1, Number.isFinite(share) ? share : 0)), size = Math.abs(s);
  const hue = signed && s > 0 ? 22 : 214;
  return hslToRgb(hue, 45 + 30 * size, dark ? 20 + 42 * size : 96 - 52 * size);
}
