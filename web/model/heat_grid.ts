// SPDX-License-Identifier: Apache-2.0
import {BinaryFrame} from './binary_frame';
import {parseCount, TimeBase} from './time_base';

export interface HeatRow {
  stream: number;
  gid: number|null;
  boundNs: number;  // of its clock; NaN: not known
}

// A step's column: when its steps begin and end on any rank. NaN: not known.
export interface HeatStep {
  first: string;  // number of its first step
  from: number;
  to: number;
}

// An answer of /heat: a value for each line of the screen and stretch of time (or step). A line has one row, or the
// worst of several: the server reduces them. Rows are in the order in which they are shown. NaN: nothing is known.
export class HeatGrid {
  readonly metric: string;
  readonly unit: string;
  readonly columns: number;
  readonly from: number;
  readonly to: number;
  readonly steps: HeatStep[]|null;
  readonly stepsPerColumn: number;
  readonly stepSource: string;
  readonly shiftNs: number;  // how far from its place an event may be counted
  readonly complete: boolean;
  readonly reason: string;  // why nothing is known; '' if something is
  readonly warnings: string[];
  readonly rows: HeatRow[];
  readonly lines: number[];  // the first row of each
  private readonly values: Float32Array;
  private readonly bounds: Float32Array|null;
  private readonly chosen: Uint32Array|null;

  constructor(buffer: ArrayBuffer, base: TimeBase) {
    const frame = new BinaryFrame(buffer), header = frame.header;
    this.metric = String(header.metric);
    this.unit = String(header.unit);
    this.columns = Number(header.columns) || 0;
    this.from = base.relative(header.from);
    this.to = base.relative(header.to);
    this.steps = Array.isArray(header.steps) ? readSteps(header, header.steps, base) : null;
    this.stepsPerColumn = Number(header.steps_per_column) || 1;
    this.stepSource = String(header.step_source ?? '');
    this.shiftNs = parseCount(header.shift_ns);
    this.complete = header.complete !== false;
    this.reason = typeof header.reason === 'string' ? header.reason : '';
    this.warnings = Array.isArray(header.warnings) ? header.warnings.map(String) : [];
    const rows = Array.isArray(header.rows) ? header.rows as Record<string, unknown>[] : [];
    this.rows = rows.map(row => ({
                           stream: Number(row.stream),
                           gid: typeof row.gid === 'number' ? row.gid : null,
                           boundNs: row.bound_known === true ? parseCount(row.bound_ns) : NaN
                         }));
    this.lines = Array.isArray(header.lines) ? header.lines.map(Number) : [];
    if (!this.lines.every((row, i) => row >= 0 && row < this.rows.length && (i === 0 || row > this.lines[i - 1])))
      throw new RangeError('the lines of the heat map are not in order');
    const cells = this.lines.length * this.columns, hasBounds = header.has_bounds === true;
    this.values = frame.f32(0, cells);
    this.bounds = hasBounds ? frame.f32(cells * 4, cells) : null;
    this.chosen = this.lines.length < this.rows.length ? frame.u32(cells * (hasBounds ? 8 : 4), cells) : null;
  }

  at(line: number, column: number): number {
    return this.values[line * this.columns + column];
  }

  // The row whose value the cell has; the line's first where nothing is known.
  rowOf(line: number, column: number): number {
    const first = this.lines[line], chosen = this.chosen?.[line * this.columns + column] ?? 0;
    return Math.min(first + chosen, this.rows.length - 1);
  }

  // How far the value may be from the truth because of clocks. NaN: not known; 0 for values without bounds.
  boundOf(line: number, column: number): number {
    return this.bounds?.[line * this.columns + column] ?? 0;
  }

  // Whether clocks alone may have made the difference, so that it means nothing.
  isUncertain(line: number, column: number): boolean {
    return !(Math.abs(this.at(line, column)) >= this.boundOf(line, column));
  }

  // Whether values are differences, which have a sign.
  get isSigned(): boolean {
    return this.unit === 'ns';
  }

  // The ends of the scale of colours: percentiles, so that one outlier does not make the rest look alike. Shares do
  // not begin at 0, because all ranks of a job are about as busy. Differences that mean nothing do not count.
  range(): [number, number] {
    const sizes: number[] = [];
    for (let line = 0; line < this.lines.length; ++line) {
      for (let column = 0; column < this.columns; ++column) {
        if (!Number.isNaN(this.at(line, column)) && !this.isUncertain(line, column))
          sizes.push(Math.abs(this.at(line, column)));
      }
    }
    sizes.sort((a, b) => a - b);
    const most = sizes[Math.round((sizes.length - 1) * 0.998)] || 1;
    if (this.isSigned) return [-most, most];
    const least = this.unit === 'share' ? sizes[Math.floor((sizes.length - 1) * 0.002)] ?? 0 : 0;
    return least < most ? [least, most] : [0, most];
  }

  // The line and column with the worst value, certain ones first; null if nothing is known.
  worst(): [number, number]|null {
    let found: [number, number]|null = null, best = [-1, 0];
    for (let line = 0; line < this.lines.length; ++line) {
      for (let column = 0; column < this.columns; ++column) {
        const value = this.at(line, column);
        if (Number.isNaN(value)) continue;
        const certainty = this.isUncertain(line, column) || value === 0 ? 1 : value < 0 ? 0 : 2;
        if (certainty < best[0] || (certainty === best[0] && value <= best[1])) continue;
        found = [line, column];
        best = [certainty, value];
      }
    }
    return found;
  }
}

function readSteps(header: Record<string, unknown>, numbers: unknown[], base: TimeBase): HeatStep[] {
  const times = (list: unknown, i: number): number => {
    const time = Array.isArray(list) ? String(list[i]) : '0';
    return time === '0' ? NaN : base.relative(time);
  };
  return numbers.map(
      (first, i) => ({first: String(first), from: times(header.step_begin_ns, i), to: times(header.step_end_ns, i)}));
}
