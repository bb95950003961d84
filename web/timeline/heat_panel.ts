// SPDX-License-Identifier: Apache-2.0
import {describeError, isAbort} from '../api/api_error';
import {HeatGrid} from '../model/heat_grid';
import {hslToRgb} from '../model/palette';
import {axisStep, formatAxisTime, formatDuration} from '../model/text_format';
import {button, element, notice, replaceChildren} from '../widgets/dom';

import {Panel} from './dock';
import {HeatMarksPainter} from './heat_marks_painter';
import {TimelineHost} from './timeline_host';

const kColumnsMax = 400, kAxisPx = 46, kAxisHeight = 18, kLineMinPx = 2;
const kReloadMs = 200;
const kScalePx = 72;                     // of the legend
const kWidthPx = 1200, kHeightPx = 220;  // until the panel has a size

interface Metric {
  name: string;
  label: string;
  meaning: string;
}
const kMetrics: Metric[] = [
  {
    name: 'busy',
    label: 'Busy or waiting',
    meaning: 'share of the time in which the rank executes, also while it waits for others: not who is slow',
  },
  {name: 'events', label: 'Events', meaning: 'events that begin in a column'},
  {
    name: 'wait',
    label: 'Collective wait',
    meaning: 'share of the time in collectives and barriers',
  },
  {
    name: 'late',
    label: 'Lateness',
    meaning: 'arrival at collectives and barriers against the group’s median: where, not why',
  },
  {
    name: 'step',
    label: 'Step time',
    meaning: 'length of a step, against the median of all ranks',
  },
];

// Ranks x time (or steps) as a map of colours. A click goes to that rank and time. A difference below the clocks' bound
// is grey: it means nothing. The server reduces ranks to lines of the screen, and each line shows its worst rank.
export class HeatPanel implements Panel {
  readonly name = 'heat';
  readonly title = 'Heat map';
  readonly element = element('div', {class: 'panel heat'});
  private readonly canvas = element('canvas', {
    class: 'heat-canvas',
    tabindex: '0',
    role: 'application',
    'aria-label': 'Heat map: arrows, Home and End move, W goes to the worst cell, Enter shows the cell on the timeline'
  });
  private readonly box = element('div', {class: 'heat-box'});
  private readonly readout = element('div', {class: 'heat-readout', role: 'status', 'aria-live': 'polite'});
  private readonly least = element('span');  // the ends of the scale
  private readonly most = element('span');
  private readonly legend = element('span', {class: 'heat-legend'});
  private readonly scale = element('canvas', {class: 'heat-scale', width: kScalePx, height: 10, 'aria-hidden': 'true'});
  private readonly key =
      element('div', {class: 'heat-key', hidden: true}, this.least, this.scale, this.most, this.legend);
  private readonly tip = element('div', {class: 'tooltip heat-tip', role: 'presentation', hidden: true});
  private readonly metric = element('select', {'aria-label': 'Metric'});
  private readonly by = element('select', {'aria-label': 'Columns'});
  private readonly sort = element('select', {'aria-label': 'Order of ranks'});
  private readonly marking = button('Verdicts', () => this.mark(), {'aria-pressed': 'false'});
  private readonly marks = new HeatMarksPainter();
  private grid: HeatGrid|null = null;
  private range: [number, number] = [0, 1];
  private image: HTMLCanvasElement|null = null;  // a pixel for each cell
  private loaded = '';                           // what the map was asked for
  private linesAsked = 0;
  private isOfWindow = false;
  private isMarked = true;
  private cell: [number, number]|null = null;  // line and column
  private abort: AbortController|null = null;
  private reload = 0;

  constructor(private readonly host: TimelineHost) {
    kMetrics.forEach(({name, label}) => this.metric.appendChild(element('option', {value: name}, label)));
    this.by.append(element('option', {value: 'time'}, 'by time'), element('option', {value: 'step'}, 'by step'));
    this.sort.append(element('option', {value: 'rank'}, 'by rank'), element('option', {value: 'worst'}, 'worst first'));
    for (const select of [this.metric, this.by, this.sort]) select.addEventListener('change', () => this.choose());
    this.canvas.addEventListener('pointermove', event => this.pointAt(event));
    this.canvas.addEventListener('pointerleave', () => this.tip.hidden = true);
    this.canvas.addEventListener('click', event => {
      this.pointAt(event);
      this.go();
    });
    this.canvas.addEventListener('keydown', event => this.onKey(event));
    new ResizeObserver(() => this.resized()).observe(this.box);
    document.addEventListener('themechange', () => this.drawGrid());
    this.element.append(
        element(
            'div', {class: 'panel-head'}, this.metric, this.by, this.sort,
            button('Of the window', () => void this.load(true)),
            button('Of the whole capture', () => void this.load(false)), this.marking, this.readout),
        this.key, this.box, this.tip);
  }

  update(): void {
    const {state} = this.host;
    this.metric.value = state.metric;
    this.by.value = this.isByStep() ? 'step' : 'time';
    this.sort.value = state.sort;
    this.updateMarks();
    if (this.loaded !== this.question())
      void this.load(this.isOfWindow);
    else
      this.paint();
  }

  private choose(): void {
    const {state} = this.host;
    state.metric = this.metric.value;
    state.by = this.by.value === 'step' ? 'step' : 'time';
    state.sort = this.sort.value;
    this.host.viewChanged();
    this.update();
  }

  // Asks for verdicts if nobody did, else shows or hides their marks.
  private mark(): void {
    const {state, verdicts} = this.host;
    if (state.why && !verdicts.problem)
      this.isMarked = !this.isMarked;
    else
      verdicts.ask(state.why || 'all', state.whyJob);
    this.updateMarks();
    this.paint();
  }

  private updateMarks(): void {
    const {state, verdicts} = this.host, {isLoading, problem} = verdicts;
    this.marking.setAttribute('aria-pressed', String(this.isMarked && state.insight !== null));
    this.marking.textContent = isLoading ? 'Verdicts…' : 'Verdicts';
    this.marking.title = problem ? problem.message : 'Mark the ranks that verdicts name, and what was not judged';
    this.marks.update(this.grid, this.isMarked ? state.insight : null);
    this.drawLegendText();
  }

  private isByStep(): boolean {
    return this.host.state.by === 'step';
  }

  private question(): string {
    const {state} = this.host;
    return `${state.metric} ${this.isByStep()} ${state.sort} ${state.layout.version}`;
  }

  // Lines that the panel has room for.
  private wantedLines(): number {
    return Math.max(1, Math.floor(((this.box.clientHeight || kHeightPx) - kAxisHeight) / kLineMinPx));
  }

  // A map whose lines have several ranks each is asked for again if the panel has another height: lines must not be
  // dropped, as each may have the rank that is looked for.
  private resized(): void {
    const {grid} = this, wanted = this.wantedLines();
    if (grid && wanted !== this.linesAsked && grid.rows.length > Math.min(wanted, this.linesAsked)) {
      window.clearTimeout(this.reload);
      this.reload = window.setTimeout(() => {
        if (this.canvas.isConnected) void this.load(this.isOfWindow);
      }, kReloadMs);
    }
    this.paint();
  }

  private async load(ofWindow: boolean): Promise<void> {
    const {state, api} = this.host, {layout, viewport, base} = state;
    this.loaded = this.question();
    this.isOfWindow = ofWindow;
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    if (!this.grid) replaceChildren(this.box, notice('loading', 'Computing the heat map'));
    try {
      this.linesAsked = this.wantedLines();
      const from = ofWindow ? Math.max(layout.begin, viewport.from) : layout.begin,
            to = ofWindow ? Math.min(layout.end + 1, viewport.to) : layout.end + 1;
      const answer = await api.heat(
          state.captureId, {
            metric: state.metric,
            from: base.absolute(from),
            to: base.absolute(to),
            columns: Math.max(1, Math.min(kColumnsMax, (this.box.clientWidth || kWidthPx) - kAxisPx)),
            lines: this.linesAsked,
            by: this.isByStep() ? 'step' : 'time',
            sort: state.sort
          },
          abort.signal);
      this.show(new HeatGrid(answer, base));
    } catch (error) {
      if (isAbort(error)) return;
      const {message, hint} = describeError(error);
      this.grid = null;
      this.key.hidden = true;
      replaceChildren(
          this.box,
          notice(
              'error', `The heat map cannot be computed: ${message}`, hint,
              button('Try again', () => void this.load(ofWindow))));
    }
  }

  private show(grid: HeatGrid): void {
    this.grid = grid;
    this.cell = null;
    this.tip.hidden = true;
    this.readout.textContent = '';
    this.key.hidden = !grid.columns || !grid.lines.length || grid.reason !== '';
    if (!this.key.hidden)
      replaceChildren(this.box, this.canvas);
    else
      replaceChildren(
          this.box, notice('empty', 'There is nothing to compare', grid.reason || 'The capture has no ranks.'));
    this.drawGrid();
  }

  private drawGrid(): void {
    const {grid} = this;
    if (!grid || !grid.columns || !grid.lines.length) return;
    this.range = grid.range();
    this.marks.update(grid, this.isMarked ? this.host.state.insight : null);
    this.image = this.makeImage(grid);
    this.drawLegend(grid);
    this.paint();
  }

  private paint(): void {
    const {grid, canvas, box, image} = this;
    if (!grid || !image || !canvas.isConnected) return;
    const width = Math.max(100, box.clientWidth), height = Math.max(40, box.clientHeight),
          scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const ctx = canvas.getContext('2d')!, style = getComputedStyle(document.documentElement);
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.fillStyle = style.getPropertyValue('--lane');
    ctx.fillRect(0, 0, width, height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, kAxisPx, 0, width - kAxisPx, height - kAxisHeight);
    const {state} = this.host;
    this.marks.paint(
        ctx, grid.lines.length, {left: kAxisPx, width: width - kAxisPx, height: height - kAxisHeight},
        state.insight?.verdicts[state.verdict] ?? null, stream => state.streamLabel(stream));
    this.paintAxes(ctx, grid, width, height, style.getPropertyValue('--text-dim'));
    this.paintCell(ctx, grid, width, height, style.getPropertyValue('--accent'));
    this.paintWindow(ctx, grid, width, height, style.getPropertyValue('--accent'));
  }

  private makeImage(grid: HeatGrid): HTMLCanvasElement {
    const image = document.createElement('canvas');
    image.width = grid.columns;
    image.height = grid.lines.length;
    const ctx = image.getContext('2d')!, data = ctx.createImageData(grid.columns, grid.lines.length), dark = isDark();
    for (let line = 0, i = 0; line < grid.lines.length; ++line) {
      for (let column = 0; column < grid.columns; ++column, i += 4) {
        const value = grid.at(line, column);
        if (Number.isNaN(value)) continue;  // stays transparent
        const [r, g, b] =
            grid.isUncertain(line, column) ? greyColour(dark) : heatColour(this.shareOf(value), dark, grid.isSigned);
        data.data[i] = r;
        data.data[i + 1] = g;
        data.data[i + 2] = b;
        data.data[i + 3] = 255;
      }
    }
    ctx.putImageData(data, 0, 0);
    return image;
  }

  // Where a value is on the scale: -1 to 1 for differences, else 0 to 1.
  private shareOf(value: number): number {
    const [least, most] = this.range;
    return this.grid?.isSigned ? value / most : (value - least) / (most - least);
  }

  private drawLegend(grid: HeatGrid): void {
    const [least, most] = this.range, ctx = this.scale.getContext('2d')!, dark = isDark();
    for (let x = 0; x < kScalePx; ++x) {
      const share = x / (kScalePx - 1),
            [r, g, b] = heatColour(grid.isSigned ? 2 * share - 1 : share, dark, grid.isSigned);
      ctx.fillStyle = `rgb(${r},${g},${b})`;
      ctx.fillRect(x, 0, 1, 10);
    }
    this.least.textContent = this.text(least);
    this.most.textContent = this.text(most);
    this.drawLegendText();
  }

  private drawLegendText(): void {
    const {grid} = this, [, most] = this.range;
    if (!grid) return;
    const meaning = kMetrics.find(metric => metric.name === grid.metric)?.meaning ?? '', texts = [meaning];
    if (grid.isSigned) texts.push('grey: below the clocks’ bound, or without one');
    const isBlank = grid.isSigned && most <= 1;  // nothing means anything, so that there is no scale
    for (const node of [this.least, this.scale, this.most]) node.hidden = isBlank;
    if (isBlank) texts.unshift('no difference is certain');
    if (grid.stepSource)
      texts.push(grid.stepSource === 'barrier' ? 'steps are between barriers' : 'steps are the framework’s');
    if (grid.stepsPerColumn > 1) texts.push(`${grid.stepsPerColumn} steps in a column, the worst is shown`);
    if (grid.lines.length < grid.rows.length) texts.push('each line is the worst of several ranks');
    if (grid.shiftNs > 0)
      texts.push(`from digests: events count up to ${formatDuration(grid.shiftNs)} from their place`);
    if (this.marks.legend) texts.unshift(this.marks.legend);
    if (!grid.complete) texts.unshift('incomplete: only a part of the events was read, choose a shorter window');
    this.legend.textContent = [...texts, ...grid.warnings].join('; ');
    this.legend.title = this.legend.textContent;
  }

  private text(value: number): string {
    const {grid} = this;
    if (grid?.unit === 'share') return `${Math.round(value * 100)} %`;
    if (grid?.unit === 'ns') return `${value > 0 ? '+' : ''}${formatDuration(value)}`;
    return String(Number(value.toPrecision(3)));
  }

  private paintAxes(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    ctx.fillStyle = colour;
    ctx.font = '11px system-ui, sans-serif';
    ctx.textBaseline = 'middle';
    const bottom = height - kAxisHeight, labels = Math.max(1, Math.floor(bottom / 18)), lines = grid.lines.length,
          each = Math.max(1, Math.ceil(lines / labels));
    for (let line = 0; line < lines; line += each) {
      const {gid} = grid.rows[grid.lines[line]];
      ctx.fillText(
          gid === null ? '–' : String(gid), 4, Math.max(7, Math.min(bottom - 6, (line + 0.5) / lines * bottom)));
    }
    // Columns are stretches of time or steps; either way labels are at round numbers.
    const from = grid.steps ? 0 : grid.from, span = grid.steps ? grid.columns : grid.to - grid.from,
          apart = axisStep(span / (width - kAxisPx), 100);
    for (let value = Math.ceil(from / apart) * apart; value < from + span; value += apart) {
      const x = kAxisPx + (value - from) / span * (width - kAxisPx);
      ctx.fillRect(Math.round(x), bottom, 1, 4);
      if (x < width - 60)
        ctx.fillText(
            grid.steps ? `step ${grid.steps[value]?.first ?? value}` : formatAxisTime(value, apart), x + 4, height - 8);
    }
  }

  private paintCell(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    if (!this.cell) return;
    const [line, column] = this.cell, w = (width - kAxisPx) / grid.columns,
                 h = (height - kAxisHeight) / grid.lines.length;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 2;
    ctx.strokeRect(kAxisPx + column * w - 1, line * h - 1, Math.max(4, w + 2), Math.max(4, h + 2));
  }

  private paintWindow(ctx: CanvasRenderingContext2D, grid: HeatGrid, width: number, height: number, colour: string):
      void {
    if (grid.steps) return;
    const {viewport} = this.host.state,
          x = (time: number): number =>
              kAxisPx + Math.max(0, Math.min(1, (time - grid.from) / (grid.to - grid.from))) * (width - kAxisPx);
    ctx.fillStyle = colour;
    ctx.fillRect(x(viewport.from), height - kAxisHeight, Math.max(2, x(viewport.to) - x(viewport.from)), 2);
  }

  private pointAt(event: MouseEvent): void {
    const {grid} = this, box = this.canvas.getBoundingClientRect();
    if (!grid) return;
    const column = Math.floor((event.clientX - box.left - kAxisPx) / (box.width - kAxisPx) * grid.columns);
    const line = Math.floor((event.clientY - box.top) / (box.height - kAxisHeight) * grid.lines.length);
    if (!this.setCell(line, column)) {
      this.tip.hidden = true;
      return;
    }
    this.tip.hidden = false;
    const {width, height} = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(0, Math.min(event.clientX + 14, window.innerWidth - width - 4))}px`;
    this.tip.style.top = `${Math.max(0, Math.min(event.clientY + 14, window.innerHeight - height - 4))}px`;
  }

  // Returns whether there is such a cell.
  private setCell(line: number, column: number): boolean {
    const {grid} = this;
    if (!grid || line < 0 || line >= grid.lines.length || column < 0 || column >= grid.columns) return false;
    this.cell = [line, column];
    const [rank, ...rest] = this.cellTexts(grid, line, column), marked = this.marks.textsAt(line, column, grid.columns);
    this.readout.textContent = `${rank} · ${[...rest, ...marked].join(', ')}`;
    replaceChildren(
        this.tip, element('div', {class: 'tooltip-title'}, rank), ...rest.map(text => element('div', {}, text)),
        ...marked.map(text => element('div', {class: 'tip-verdict'}, text)));
    this.paint();
    return true;
  }

  // The rank first, then when, the value and how certain it is.
  private cellTexts(grid: HeatGrid, line: number, column: number): string[] {
    const value = grid.at(line, column), row = grid.rows[grid.rowOf(line, column)],
          at = grid.steps ? this.stepText(grid, column) : formatDuration(this.timeOf(column));
    const texts = [this.host.state.streamLabel(row.stream), at];
    if (Number.isNaN(value)) return [...texts, 'nothing is known'];
    texts.push(grid.isSigned ? `${this.text(value)} against the median` : this.text(value));
    const bound = grid.boundOf(line, column);
    if (!grid.isSigned) return texts;
    if (Number.isNaN(bound))
      texts.push('the clocks’ bound is unknown');
    else
      texts.push(`${grid.isUncertain(line, column) ? 'below the bound of' : 'bound'} ±${formatDuration(bound)}`);
    return texts;
  }

  private stepText(grid: HeatGrid, column: number): string {
    const first = grid.steps?.[column]?.first ?? String(column);
    return grid.stepsPerColumn > 1 ? `${grid.stepsPerColumn} steps from ${first}` : `step ${first}`;
  }

  private timeOf(column: number): number {
    const {grid} = this;
    return grid ? grid.from + (column + 0.5) / grid.columns * (grid.to - grid.from) : 0;
  }

  // Opens the rank of the cell on the timeline, at the cell's time or step.
  private go(): void {
    const {grid, cell, host} = this;
    if (!grid || !cell) return;
    const [line, column] = cell, {stream} = grid.rows[grid.rowOf(line, column)], {viewport} = host.state,
                 step = grid.steps?.[column];
    host.state.tree.expanded.add(stream);
    host.tracksChanged();
    // A step without a place in time leaves the window where it is.
    if (grid.steps && !(step && step.from <= step.to)) return host.reveal(stream, -1, viewport.from, viewport.from);
    const width = step ? step.to - step.from : (grid.to - grid.from) / grid.columns,
          time = step ? (step.from + step.to) / 2 : this.timeOf(column), half = step ? width * 0.75 : width * 2;
    viewport.show(time - half, time + half);
    host.reveal(stream, -1, time, time);
  }

  private onKey(event: KeyboardEvent): void {
    const {grid} = this, [line, column] = this.cell ?? [0, 0], worst = grid?.worst();
    const moves: Record<string, [number, number]|null|undefined> = {
      ArrowUp: [line - 1, column],
      ArrowDown: [line + 1, column],
      ArrowLeft: [line, column - 1],
      ArrowRight: [line, column + 1],
      Home: [line, 0],
      End: [line, (grid?.columns ?? 1) - 1],
      w: worst,
      W: worst
    };
    const move = moves[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || (move === undefined && event.key !== 'Enter')) return;
    if (event.key === 'Enter')
      this.go();
    else if (move)
      this.setCell(move[0], move[1]);
    this.tip.hidden = true;
    event.preventDefault();
    event.stopPropagation();
  }
}

function isDark(): boolean {
  return document.documentElement.dataset.theme === 'dark';
}

function greyColour(dark: boolean): [number, number, number] {
  return dark ? [58, 61, 66] : [205, 207, 210];
}

// One hue from faint to strong. `signed`: what is above 0 is orange, what is below is blue.
function heatColour(share: number, dark: boolean, signed: boolean): [number, number, number] {
  const s = Math.max(-1, Math.min(1, Number.isFinite(share) ? share : 0)), size = Math.abs(s);
  const hue = signed && s > 0 ? 22 : 214;
  return hslToRgb(hue, 45 + 30 * size, dark ? 20 + 42 * size : 96 - 52 * size);
}
