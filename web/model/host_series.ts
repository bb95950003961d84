// SPDX-License-Identifier: Apache-2.0
import {TileRow} from './span_tile';

// Samples of one host as a chart draws them: each value holds until the next. Times are in the tile's unit.
export interface HostSeries {
  stream: number;
  processors: number;
  cpu: Steps;          // average of all processors, in percent
  busiest: Steps;      // the busiest one at each time, in percent
  memory: Steps;       // in use, in percent
  usedBytes: number;   // the highest
  totalBytes: number;  // 0: unknown
}

export interface Steps {
  at: number[];
  value: number[];
}

// Groups the counters of an answer of /spans by host. The names are those of docs/formats/pftrace.md; rows with other
// names are left out.
export function hostSeries(rows: TileRow[]): HostSeries[] {
  const byStream = new Map<number, HostSeries>(), processors = new Map<number, Map<number, number>>();
  for (const row of rows) {
    if (!row.isCounter) continue;
    const cpu = /^host_cpu (\S+) util_percent$/.exec(row.name), memory = /^host_memory (\w+)$/.exec(row.name);
    if (!cpu && !memory) continue;
    let host = byStream.get(row.stream);
    if (!host) {
      host = {
        stream: row.stream,
        processors: 0,
        cpu: none(),
        busiest: none(),
        memory: none(),
        usedBytes: 0,
        totalBytes: 0
      };
      byStream.set(row.stream, host);
      processors.set(row.stream, new Map());
    }
    if (memory) {
      if (memory[1] === 'used_percent') host.memory = stepsOf(row);
      if (memory[1] === 'used_bytes') host.usedBytes = row.max;
      if (memory[1] === 'total_bytes') host.totalBytes = row.max;
    } else if (cpu![1] === 'average') {
      host.cpu = stepsOf(row);
    } else {
      ++host.processors;
      addMaximum(row, processors.get(row.stream)!);
    }
  }
  for (const host of byStream.values()) {
    const entries = [...processors.get(host.stream)!].sort((a, b) => a[0] - b[0]);
    host.busiest = {at: entries.map(([at]) => at), value: entries.map(([, value]) => value)};
  }
  return [...byStream.values()];
}

// The processors of a host are sampled together, so their samples have the same times.
function addMaximum(row: TileRow, maximum: Map<number, number>): void {
  for (let i = 0; i < row.start.length; ++i) {
    const value = percent(row.value[i]);
    if (value > (maximum.get(row.start[i]) ?? -1)) maximum.set(row.start[i], value);
  }
}

function none(): Steps {
  return {at: [], value: []};
}

function stepsOf(row: TileRow): Steps {
  return {at: [...row.start], value: [...row.value].map(percent)};
}

function percent(value: number): number {
  return Number.isFinite(value) ? Math.min(100, Math.max(0, value)) : 0;
}

export function highest(steps: Steps): number {
  return steps.value.reduce((most, value) => Math.max(most, value), 0);
}

// An SVG path of the steps in a box of `width` by `height`, from the bottom (0 percent) to the top (100 percent).
export function stepPath(steps: Steps, span: number, width: number, height: number): string {
  const x = (at: number): string => (Math.min(1, Math.max(0, at / Math.max(1, span))) * width).toFixed(1);
  const y = (value: number): string => ((1 - value / 100) * height).toFixed(1);
  let path = '';
  for (let i = 0; i < steps.at.length; ++i)
    path += (i === 0 ? `M${x(steps.at[i])} ${y(steps.value[i])}` : `V${y(steps.value[i])}`) +
        `H${x(i + 1 < steps.at.length ? steps.at[i + 1] : span)}`;
  return path;
}
