// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {BinaryFrame} from './binary_frame';
import {buildSpans} from './frame_builder';
import {NameTable} from './name_table';
import {summarise} from './pick_summary';
import {firstAtLeast, kMerged, selfTime, SpanTile} from './span_tile';
import {TimeBase} from './time_base';

const kBase = new TimeBase('1795807991714858703');

test('reads the columns of each row in place', () => {
  const names = new NameTable();
  const tile = new SpanTile(
      buildSpans(
          {from: '1795807991714858703', to: '1795807991714868703'},
          [
            {
              fields: {row: 17, depth: 2},
              items: [
                {start: 10, duration: 500, name: 0},
                {start: 20, duration: 4000000000, count: 3, name: 1, depth: 1, flags: kMerged}, {start: 30, duration: 1}
              ]
            },
            {fields: {row: 18, mode: 'bins'}, items: [{start: 5, duration: 6}]},
          ]),
      kBase, names);
  assert.equal(tile.from, 0);
  assert.equal(tile.to, 10000);
  assert.deepEqual([...tile.rows[0].start], [10, 20, 30]);
  assert.deepEqual([...tile.rows[0].duration], [500, 4000000000, 1]);
  assert.deepEqual([...tile.rows[0].depthOf], [0, 1, 0]);
  assert.equal(tile.rows[0].longest, 4000000000);
  assert.equal(tile.rows[0].count[1], 3);
  assert.deepEqual([...tile.rows[1].start], [5]);
  assert.equal(tile.isExact, false);
  assert.equal(names.names[tile.nameNumbers[1]], 'b');
  assert.equal(names.categories[names.categoryOf[tile.nameNumbers[1]]], 'collective');
  assert.equal(tile.byStream.get(4)?.length, 2);
});

test('scales start and duration by the unit of the answer', () => {
  const tile = new SpanTile(
      buildSpans(
          {from: '1795807991714858703', to: '1795808991714858703', unit_ns: 256},
          [{fields: {}, items: [{start: 1000, duration: 10}]}]),
      kBase, new NameTable());
  assert.equal(tile.timeOf(tile.rows[0], 0), 256000);
  assert.equal(tile.durationOf(tile.rows[0], 0), 2560);
});

test('refuses what is no answer, and columns outside it', () => {
  assert.throws(() => new BinaryFrame(new ArrayBuffer(4)), RangeError);
  assert.throws(() => new BinaryFrame(new ArrayBuffer(64)), /NTV1/);
  const whole = buildSpans({from: '0', to: '1'}, [{fields: {}, items: [{start: 1, duration: 1}]}]);
  assert.throws(() => new SpanTile(whole.slice(0, whole.byteLength - 9), kBase, new NameTable()), RangeError);
  const lying = buildSpans({from: '0', to: '1'}, [{fields: {items: 1000000}, items: [{start: 1, duration: 1}]}]);
  assert.throws(() => new SpanTile(lying, kBase, new NameTable()), RangeError);
});

test('finds the first item at or after a time', () => {
  const start = Uint32Array.from([1, 5, 5, 9]);
  assert.deepEqual([0, 1, 2, 5, 6, 9, 10].map(value => firstAtLeast(start, value)), [0, 0, 1, 1, 3, 3, 4]);
});

test('keeps nanoseconds of absolute times exact', () => {
  assert.equal(kBase.relative('1795807991714858704'), 1);
  assert.equal(kBase.absolute(123456789012345), '1795931448503871048');
  assert.equal(new TimeBase('nonsense').originNs, 0n);
});

test('own time is without the spans of the next level; picked spans add up by any key', () => {
  const tile = new SpanTile(
      buildSpans({from: '1795807991714858703', to: '1795807991714868703'}, [{
                   fields: {depth: 3},
                   items: [
                     {start: 100, duration: 1000}, {start: 200, duration: 300, depth: 1},
                     {start: 250, duration: 100, depth: 2}, {start: 900, duration: 100, depth: 1},
                     {start: 2000, duration: 50, depth: 1}
                   ]
                 }]),
      kBase, new NameTable());
  assert.equal(selfTime(tile, tile.rows[0], 100, 1100, 0), 600);
  assert.equal(selfTime(tile, tile.rows[0], 200, 500, 1), 200);
  const picks = [1, 2, 3, 10].map((duration, i) => ({name: i === 3 ? 'b' : 'a', duration, self: duration / 2}));
  assert.deepEqual(summarise(picks, pick => pick.name), [
    {name: 'b', count: 1, total: 10, self: 5, p50: 10, p99: 10, min: 10, max: 10},
    {name: 'a', count: 3, total: 6, self: 3, p50: 2, p99: 3, min: 1, max: 3},
  ]);
});
