// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {buildFrame} from './frame_builder';
import {HeatGrid} from './heat_grid';
import {TimeBase} from './time_base';

const kBegin = '1795807991714858703', kBase = new TimeBase(kBegin);

// Three ranks on as many lines, unless `lines` has fewer.
function build(
    values: number[], more: Record<string, unknown> = {}, bounds: number[] = [], chosen: number[] = []): HeatGrid {
  const columns = Uint8Array.from([
    ...new Uint8Array(Float32Array.from([...values, ...bounds]).buffer),
    ...new Uint8Array(Uint32Array.from(chosen).buffer)
  ]);
  const header = {
    metric: 'late',
    unit: 'ns',
    columns: 2,
    from: kBegin,
    to: '1795807991714858903',
    complete: true,
    has_bounds: bounds.length > 0,
    steps: null,
    reason: null,
    warnings: [],
    rows: [5, 6, 7].map(stream => ({stream, gid: stream - 5, bound_known: stream < 7, bound_ns: '10'})),
    lines: [0, 1, 2],
    ...more
  };
  return new HeatGrid(buildFrame(header, columns), kBase);
}

test('reads values, bounds and rows', () => {
  const grid = build([1, NaN, 3, 4, 5, 6], {}, [0, NaN, 10, 20, 30, NaN]);
  assert.deepEqual([grid.from, grid.to, grid.steps, grid.reason, grid.shiftNs], [0, 200, null, '', 0]);
  assert.equal(build([1, 2, 3, 4, 5, 6], {shift_ns: '1048576'}).shiftNs, 1048576);
  assert.deepEqual(grid.rows.map(row => [row.stream, row.gid, row.boundNs]), [[5, 0, 10], [6, 1, 10], [7, 2, NaN]]);
  assert.deepEqual([grid.at(1, 1), grid.boundOf(1, 1), grid.rowOf(1, 1)], [4, 20, 1]);
});

test('differences below their bound mean nothing, and unknown bounds are such', () => {
  const grid = build([100, -100, 9, 0, 50, 51], {}, [99, 99, 10, 0, NaN, 50]);
  const uncertain = [0, 1, 2].map(line => [0, 1].map(column => grid.isUncertain(line, column)));
  assert.deepEqual(uncertain, [[false, false], [true, false], [true, false]]);
  assert.equal(build([0.5, 0, 1, 1, 1, 1], {metric: 'busy', unit: 'share'}).isUncertain(0, 0), false);
});

test('a line of several rows names the one that it shows', () => {
  const grid = build([7, 8], {lines: [0]}, [], [2, 1]);
  assert.deepEqual([grid.rowOf(0, 0), grid.rowOf(0, 1)], [2, 1]);
  assert.equal(build([7, 8], {lines: [0]}, [], [4000000000, 0]).rowOf(0, 0), 2);
});

test('the worst cell is certain and late before anything else', () => {
  assert.deepEqual(build([-900, 10, 5000, NaN, 300, 200], {}, [1, 1, 6000, 0, 1, 1]).worst(), [2, 0]);
  assert.deepEqual(build([-900, NaN, 5000, NaN, NaN, NaN], {}, [1, 1, 6000, 0, 1, 1]).worst(), [1, 0]);
  assert.equal(build([NaN, NaN, NaN, NaN, NaN, NaN]).worst(), null);
});

test('the scale is that of the differences that mean something', () => {
  assert.deepEqual(build([100, -200, 5000, NaN, 0, 1], {}, [1, 1, 6000, 0, 0, 0]).range(), [-200, 200]);
  assert.deepEqual(build([0.5, 0.625, 0.75, 0.75, 0.875, 0.875], {unit: 'share'}).range(), [0.5, 0.875]);
  assert.deepEqual(build([NaN, NaN, NaN, NaN, NaN, NaN]).range(), [-1, 1]);
});

test('columns by step have numbers and times', () => {
  const grid = build([1, 2, 3, 4, 5, 6], {
    steps: ['0', '8'],
    steps_per_column: 8,
    step_begin_ns: ['0', '1795807991714858803'],
    step_end_ns: ['0', '1795807991714858813'],
    step_source: 'barrier'
  });
  assert.deepEqual(grid.steps, [{first: '0', from: NaN, to: NaN}, {first: '8', from: 100, to: 110}]);
  assert.deepEqual([grid.stepsPerColumn, grid.stepSource], [8, 'barrier']);
});

test('an answer without steps is empty and has a reason', () => {
  const grid = build([], {columns: 0, steps: [], reason: 'there are no steps'});
  assert.deepEqual([grid.reason, grid.columns, grid.worst()], ['there are no steps', 0, null]);
});

test('hostile answers are refused', () => {
  assert.throws(() => build([1, 2, 3, 4], {}), RangeError);
  assert.throws(() => build([1, 2, 3, 4, 5, 6], {lines: [0, 2, 1]}), RangeError);
  assert.throws(() => build([1, 2, 3, 4, 5, 6], {lines: [0, 1, 9]}), RangeError);
});
