// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {buildSpans} from './frame_builder';
import {NameTable} from './name_table';
import * as scene from './scene';
import {SpanTile} from './span_tile';
import {TileStore} from './tile_store';
import {TimeBase} from './time_base';

function records(frame: scene.Scene, section: number): number[][] {
  const size = scene.kRecordSize[section], found: number[][] = [];
  for (let i = frame.at(section); i < frame.at(section + 1); i += size)
    found.push([...frame.data.subarray(i, i + size)]);
  return found;
}

test('a scene reads back as it was written, also when a section is empty and the array grows', () => {
  const writer = new scene.SceneWriter();
  for (let frame = 0; frame < 2; ++frame) {
    writer.start(1600, 900, 17, 53, 1.5, 7);
    writer.begin(scene.kFill, 1);
    writer.put(1, 2, 3, scene.kBandFill);
    writer.begin(scene.kSpan, 0);
    for (let i = 0; i < 50000; ++i) writer.put(i & 0xfff | 0xffff << 16, 3 | 40000 << 16);
    writer.begin(scene.kGap, 0);
    writer.putGap(1, 2, 3, 4, scene.kDamageGap, 'damaged', 17);
    writer.putGap(5, 6, 7, 8, scene.kLossGap, '', 17);
    writer.finish();
  }
  const frame = new scene.Scene(writer.data, writer.texts);
  assert.deepEqual([frame.width, frame.height, frame.unitPx, frame.strips, frame.scale], [1600, 900, 17, 53, 1.5]);
  assert.deepEqual(records(frame, scene.kFill), [[1, 2, 3, 1]]);
  assert.deepEqual(records(frame, scene.kGrid), []);
  const spans = records(frame, scene.kSpan);
  assert.equal(spans.length, 50000);
  assert.deepEqual(
      [spans[5][0] & 0xffff, spans[5][0] >>> 16, spans[5][1] & 0xffff, spans[5][1] >>> 16], [5, 65535, 3, 40000]);
  assert.deepEqual(records(frame, scene.kGap), [[1, 2, 3, 4, 2, 0, 17], [5, 6, 7, 8, 0, -1, 17]]);
  assert.deepEqual(records(frame, scene.kLabel), []);
  assert.deepEqual(frame.texts, ['damaged']);
  assert.throws(() => writer.begin(scene.kGrid, 0), RangeError);
});

test('over long navigation the answers that are kept stay below the limit, and the newest are drawn', () => {
  const names = new NameTable(), base = new TimeBase('0');
  const columns = Array.from({length: 60}, (_, i) => ({start: i * 10, duration: 5}));
  const tile = (from: number, to: number): SpanTile =>
      new SpanTile(buildSpans({from: String(from), to: String(to)}, [{fields: {}, items: columns}]), base, names);
  const limit = tile(0, 10000).bytes * 20, store = new TileStore(limit);
  let seed = 1, held = 0;
  const random = (n: number): number => (seed = seed * 1103515245 + 12345 >>> 0) % n;
  for (let i = 0; i < 3000; ++i) {
    const block = random(200), from = random(1e6), nsPerPx = 2 ** random(12);
    const added = tile(from, from + 1000 * nsPerPx);
    store.add(block, added, nsPerPx, String(i >> 7));
    assert.ok(store.bytes <= limit, `${store.bytes} bytes after ${i}`);
    assert.equal(store.best(block, from, from + 1000 * nsPerPx, nsPerPx)?.tile.from, added.from);
  }
  for (let block = 0; block < 200; ++block)
    for (const {tile: kept} of store.tilesOf(block)) held += kept.bytes;
  assert.equal(held, store.bytes, 'what is counted is what is held');
  assert.equal(store.blocks, new Set(Array.from({length: 200}, (_, b) => b).filter(b => store.tilesOf(b).length)).size);
});
