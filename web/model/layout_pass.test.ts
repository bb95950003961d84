// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {DrawList} from './draw_list';
import {buildSpans, BuiltRow} from './frame_builder';
import {LayoutPass, PassView} from './layout_pass';
import {NameTable} from './name_table';
import {kMerged, SpanTile} from './span_tile';
import {TileStore} from './tile_store';
import {TimeBase} from './time_base';
import {Track} from './track_tree';

const kTrack: Track = {
  kind: 'row',
  key: 'r',
  label: 'row',
  level: 3,
  section: '',
  instance: 0,
  stream: 4,
  row: null,
  expanded: false,
  pinned: false,
  top: 0,
  units: 2,
  count: 0
};

function layOut(items: BuiltRow['items'], view: Partial<PassView>, flat = false): DrawList {
  const names = new NameTable(), list = new DrawList();
  const tile =
      new SpanTile(buildSpans({from: '1000', to: '11000'}, [{fields: {depth: 2}, items}]), new TimeBase('0'), names);
  list.reserve(2, 1000);
  const frame = list.addRow(kTrack, tile, tile.rows[0], 0, flat);
  new LayoutPass(names).addRow(list, frame, {from: 1000, nsPerPx: 10, width: 1000, strips: 2, ...view});
  return list;
}

const rectangles = (list: DrawList): number[][] =>
    Array.from({length: list.count}, (_, i) => [list.begin[i], list.end[i], list.strip[i], list.item[i]]);

test('keeps the longest of the spans that begin in one pixel, for each nesting level', () => {
  const list = layOut(
      [
        {start: 100, duration: 3}, {start: 101, duration: 95}, {start: 102, duration: 5, depth: 1},
        {start: 105, duration: 4}
      ],
      {});
  assert.deepEqual(rectangles(list), [[10, 19, 0, 1], [10, 11, 1, 2]]);
});

test('finds long spans that begin far to the left of the window', () => {
  assert.deepEqual(
      rectangles(layOut([{start: 0, duration: 9000}, {start: 10, duration: 5}], {from: 6000, width: 100})),
      [[0, 100, 0, 0]]);
});

test('leaves out what ends before the window or begins after it', () => {
  assert.deepEqual(
      rectangles(layOut([{start: 0, duration: 10}, {start: 9900, duration: 10}], {from: 3000, width: 100})), []);
});

test('a flat strip shows children only where they can be seen', () => {
  const list = layOut(
      [
        {start: 0, duration: 1000}, {start: 100, duration: 200, depth: 1}, {start: 400, duration: 4, depth: 1},
        {start: 500, duration: 300, depth: 1, count: 9, flags: kMerged}
      ],
      {}, true);
  assert.deepEqual(rectangles(list), [[0, 100, 0, 0], [10, 30, 0, 1]]);
});

test('the pointer hits the span that was painted last, or the nearest within reach', () => {
  const list = layOut([{start: 0, duration: 1000}, {start: 100, duration: 200, depth: 1}], {}, true);
  assert.equal(list.hit(20, 0, 3), 1);
  assert.equal(list.hit(50, 0, 3), 0);
  assert.equal(list.hit(101, 0, 3), 0);
  assert.equal(list.hit(110, 0, 3), -1);
});

test('the store prefers an answer that covers the window, then the nearest resolution, and keeps its limit', () => {
  const names = new NameTable(), base = new TimeBase('0');
  const tile = (from: number, to: number): SpanTile => new SpanTile(
      buildSpans({from: String(from), to: String(to)}, [{fields: {mode: 'bins'}, items: [{start: 0, duration: 1}]}]),
      base, names);
  const store = new TileStore(1 << 20), all = tile(0, 1e6), part = tile(1000, 4000);
  store.add(0, all, 1000, '7');
  store.add(0, part, 2, '7');
  assert.equal(store.best(0, 1500, 2500, 2)?.tile, part);
  assert.equal(store.best(0, 0, 500000, 500)?.tile, all);
  assert.equal(store.best(1, 0, 1, 1), null);
  assert.equal(store.isSharp(0, 1500, 2500, 2, '7'), true);
  assert.equal(store.isSharp(0, 1500, 2500, 2, '8'), false);
  assert.equal(store.isSharp(0, 1500, 2500, 0.5, '7'), false);
  const small = new TileStore(all.bytes * 2);
  for (let i = 0; i < 10; ++i) small.add(i, tile(0, 100), 1, '7');
  assert.ok(small.bytes <= all.bytes * 2);
});
