// SPDX-License-Identifier: Apache-2.0
// A frame and an answer touch as many lines as they show or change, however many there are. Lines are counted, nothing
// is timed.
import assert from 'node:assert/strict';
import test from 'node:test';

import {CaptureLayout} from '../model/capture_layout';
import {buildSpans} from '../model/frame_builder';
import {NameTable} from '../model/name_table';
import {SpanTile} from '../model/span_tile';
import {TimeBase} from '../model/time_base';
import {Grouping} from '../model/track_kinds';
import {TrackList} from '../model/track_list';
import {Track, TrackTree} from '../model/track_tree';

import {VisibleTracks} from './visible_tracks';

const kBase = new TimeBase('1000'), kRowsOfRank = 6, kScreen = 60;

function makeTree(ranks: number, grouping: Grouping): TrackTree {
  const streams = Array.from({length: ranks}, (_, gid) => ({
                                                number: gid,
                                                instance: gid >> 6,
                                                kind: 'core',
                                                process: `pid ${gid >> 2}`,
                                                label: `gid ${gid}`,
                                                gid,
                                                core: gid & 3,
                                                begin_ns: '1000',
                                                end_ns: '2000',
                                              }));
  const instances = Array.from({length: (ranks >> 6) + 1}, (_, i) => ({id: `i-${i}`}));
  const tree = new TrackTree(new CaptureLayout(
      {capture: {id: 'c'}, version: '7', begin_ns: '1000', end_ns: '2000', instances, streams}, kBase));
  tree.grouping = grouping;
  for (const {number} of tree.layout.streams) tree.expanded.add(number);
  return tree;
}

// An answer about some ranks whose rows have these levels; `extra` names one more row.
function answer(ranks: number[], depth: number, extra = ''): SpanTile {
  const items = [{start: 0, duration: 1}];
  const rows = ranks.flatMap(
      stream => [...Array.from({length: kRowsOfRank}, (_, i) => ({name: `gid${stream}-nc0-row${i}`, order: i, depth})),
                 ...(extra ? [{name: extra, order: 9, depth: 1}] : [])]
                    .map((row, i) => ({fields: {stream, row: stream * 10 + i, ...row}, items})));
  return new SpanTile(buildSpans({from: '1000', to: '2000'}, rows), kBase, new NameTable());
}

function range(first: number, count: number): number[] {
  return Array.from({length: count}, (_, i) => first + i);
}

const describe = (tree: TrackTree): string[] =>
    tree.tracks.map(track => `${track.key}@${tree.topOf(track)}+${track.units}#${track.count}`);

test('an answer about 16 of 10,000 open ranks touches their lines alone', () => {
  for (const grouping of ['instance', 'rank', 'kind', 'name'] as Grouping[]) {
    const tree = makeTree(10_000, grouping);
    for (let first = 0; first < 10_000; first += 1_000) tree.learnRows(answer(range(first, 1_000), 1));
    tree.build();
    assert.ok(tree.touched >= 60_000, `${grouping}: ${tree.touched} lines`);
    assert.ok(tree.learnRows(answer(range(5_000, 16), 3)));
    tree.rebuild();
    assert.ok(tree.touched <= 16 * (kRowsOfRank + 1), `${grouping}: ${tree.touched} lines`);
    const visible = new VisibleTracks();
    visible.update(tree, Math.floor(tree.units / 2), kScreen);
    assert.ok(visible.count > 0 && visible.count <= kScreen, `${visible.count} lines`);
  }
});

test('replaced lines are those that building everything again gives', () => {
  for (const grouping of ['instance', 'process', 'core', 'kind', 'name'] as Grouping[]) {
    const tree = makeTree(200, grouping), answers = [
      answer(range(0, 200), 1), answer(range(30, 16), 4), answer(range(100, 3), 2), answer(range(30, 2), 5),
      answer(range(199, 1), 7)
    ];
    tree.learnRows(answers[0]);
    tree.collapsed.add('i1');
    tree.build();
    for (const one of answers.slice(1)) {
      tree.learnRows(one);
      tree.rebuild();
      const patched = describe(tree), {units, length} = tree.list;
      tree.build();
      assert.deepEqual(patched, describe(tree), grouping);
      assert.deepEqual([units, length], [tree.list.units, tree.list.length]);
    }
  }
});

test('ranks whose rows arrive take the place of those that were taken to exist', () => {
  for (const grouping of ['kind', 'name'] as Grouping[]) {
    const tree = makeTree(100, grouping);
    tree.learnRows(answer(range(0, 10), 2));
    tree.build();
    tree.learnRows(answer(range(50, 10), 3));
    tree.rebuild();
    const patched = describe(tree);
    tree.build();
    assert.deepEqual(patched, describe(tree));
    // A row that no rank had before makes a group of its own.
    tree.learnRows(answer(range(70, 1), 2, 'another'));
    tree.rebuild();
    assert.ok(tree.tracks.some(track => track.label === 'another' || track.label.endsWith('· another')));
  }
});

test('what is hidden, pinned and filtered is found again after an answer', () => {
  const tree = makeTree(50, 'instance');
  tree.learnRows(answer(range(0, 50), 1));
  tree.hidden.add(3);
  tree.pinned.add(4);
  tree.build();
  tree.learnRows(answer(range(2, 4), 2));
  tree.rebuild();
  const patched = [...describe(tree), ...tree.pinnedTracks.map(track => `${track.key}+${track.units}`)];
  tree.build();
  assert.deepEqual(patched, [...describe(tree), ...tree.pinnedTracks.map(track => `${track.key}+${track.units}`)]);
  assert.equal(tree.find(5, 52)?.units, 2);
  assert.equal(tree.find(3, 32), undefined);
});

test('the line at a unit is the one that covers it, also beside blocks without lines', () => {
  const line = (units: number): Track => ({units} as Track);
  const list = new TrackList([[], [line(2), line(3)], [], [], [line(1)], []]);
  assert.deepEqual(
      [0, 1, 2, 4, 5, 6, 99].map(unit => Object.values(list.at(unit))),
      [[1, 0], [1, 0], [1, 1], [1, 1], [4, 0], [4, 0], [4, 0]]);
  list.replace(2, [line(4)]);
  assert.deepEqual([5, 8, 9].map(unit => list.at(unit).block), [2, 2, 4]);
  assert.deepEqual([list.units, list.length, list.unitsBefore(4), list.lengthBefore(4)], [10, 4, 9, 3]);
  list.replace(1, []);
  assert.deepEqual([list.at(0).block, list.units, list.length], [2, 5, 2]);
  assert.equal(new TrackList().length, 0);
});
