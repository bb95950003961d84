// SPDX-License-Identifier: Apache-2.0
import {HeatGrid} from './heat_grid';
import {Insight, PlacedRefusal, PlacedVerdict} from './insight';

// A stretch of a heat map's line that a verdict names, or that was not judged. `left` and `right` are shares of the
// map's width.
export interface HeatMark {
  line: number;
  stream: number;
  left: number;
  right: number;
  verdict: PlacedVerdict|null;
  refusal: PlacedRefusal|null;
}

// What to mark on a map. A line of several ranks is marked if one of them is named. Refusals come first, so that
// verdicts are drawn above them.
export function heatMarks(grid: HeatGrid, insight: Insight): HeatMark[] {
  const refused: HeatMark[] = [], named: HeatMark[] = [], {refusalsOfAll} = insight;
  for (let line = 0; line < grid.lines.length; ++line) {
    const end = grid.lines[line + 1] ?? grid.rows.length, seen = new Set<PlacedRefusal|PlacedVerdict>();
    for (const refusal of refusalsOfAll) addMark(refused, grid, line, -1, null, refusal);
    for (let row = grid.lines[line]; row < end; ++row) {
      const {stream} = grid.rows[row];
      for (const refusal of insight.refusalsOf(stream)) {
        if (!seen.has(refusal)) addMark(refused, grid, line, stream, null, refusal);
        seen.add(refusal);
      }
      for (const verdict of insight.of(stream)) {
        if (!seen.has(verdict)) addMark(named, grid, line, stream, verdict, null);
        seen.add(verdict);
      }
    }
  }
  return [...refused, ...named];
}

function addMark(
    into: HeatMark[], grid: HeatGrid, line: number, stream: number, verdict: PlacedVerdict|null,
    refusal: PlacedRefusal|null): void {
  const place = stretchOf(grid, (verdict ?? refusal)!.from, (verdict ?? refusal)!.to);
  if (place) into.push({line, stream, left: place[0], right: place[1], verdict, refusal});
}

// Where a stretch of time is on the map; null if it is not on it.
function stretchOf(grid: HeatGrid, from: number, to: number): [number, number]|null {
  if (!grid.steps) {
    if (to < grid.from || from > grid.to) return null;
    const share = (time: number): number =>
        Math.max(0, Math.min(1, (time - grid.from) / Math.max(1, grid.to - grid.from)));
    return [share(from), share(to)];
  }
  let first = -1, last = -1;
  grid.steps.forEach((step, column) => {
    if (!(step.to >= from && step.from <= to)) return;  // NaN, too
    if (first < 0) first = column;
    last = column;
  });
  return first < 0 ? null : [first / grid.columns, (last + 1) / grid.columns];
}
