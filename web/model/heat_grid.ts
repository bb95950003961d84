// SPDX-License-Identifier: Apache-2.0
import {BinaryFrame} from './binary_frame';
import {parseCount, TimeBase} from './time_base';

export interface HeatRow {
  stream: number;
  gid: number|null;
  boundNs: number;
}

// An answer of /heat: a value for each rank and stretch of time (or step). NaN: nothing is known.
export class HeatGrid {
  readonly metric: string;
  readonly unit: string;
  readonly columns: number;
  readonly from: number;
  readonly to: number;
  readonly steps: string[]|null;
  readonly rows: HeatRow[];
  readonly values: Float32Array;

  constructor(buffer: ArrayBuffer, base: TimeBase) {
    const frame = new BinaryFrame(buffer), header = frame.header;
    this.metric = String(header.metric);
    this.unit = String(header.unit);
    this.columns = Number(header.columns) || 0;
    this.from = base.relative(header.from);
    this.to = base.relative(header.to);
    this.steps = Array.isArray(header.steps) ? header.steps.map(String) : null;
    const rows = Array.isArray(header.rows) ? header.rows as Record<string, unknown>[] : [];
    this.rows = rows.map(row => ({
                           stream: Number(row.stream),
                           gid: typeof row.gid === 'number' ? row.gid : null,
                           boundNs: parseCount(row.bound_ns)
                         }));
    this.values = frame.f32(0, this.rows.length * this.columns);
  }

  at(row: number, column: number): number {
    return this.values[row * this.columns + column];
  }

  // The value that the difference to the others is measured against: the column's median for step times, 0 for the
  // rest, which are differences already.
  baseline(): Float32Array {
    const medians = new Float32Array(this.columns);
    if (this.metric !== 'step') return medians;
    const column: number[] = [];
    for (let c = 0; c < this.columns; ++c) {
      column.length = 0;
      for (let r = 0; r < this.rows.length; ++r) {
        const value = this.at(r, c);
        if (!Number.isNaN(value)) column.push(value);
      }
      column.sort((a, b) => a - b);
      medians[c] = column.length ? column[column.length >> 1] : NaN;
    }
    return medians;
  }

  // Whether the cell differs from its baseline by no more than the clocks' bound, so that it means nothing.
  isWithinBound(row: number, column: number, baseline: Float32Array): boolean {
    if (this.unit !== 'ns') return false;
    return Math.abs(this.at(row, column) - baseline[column]) <= this.rows[row].boundNs;
  }
}

// Reduces rows to at most `rowsMax` by the value furthest from its baseline, so that one bad rank among 10,000 stays
// visible. Returns for each output row and column the row that won, or -1 where nothing is known.
export function reduceRows(
    grid: HeatGrid, baseline: Float32Array, rowsMax: number): {rows: number, winner: Int32Array} {
  const rows = Math.max(1, Math.min(rowsMax, grid.rows.length)), winner = new Int32Array(rows * grid.columns).fill(-1);
  for (let r = 0; r < grid.rows.length; ++r) {
    const out = Math.floor(r * rows / grid.rows.length) * grid.columns;
    for (let c = 0; c < grid.columns; ++c) {
      const value = grid.at(r, c), best = winner[out + c];
      if (Number.isNaN(value)) continue;
      if (best < 0 || Math.abs(value - baseline[c]) > Math.abs(grid.at(best, c) - baseline[c])) winner[out + c] = r;
    }
  }
  return {rows, winner};
}
