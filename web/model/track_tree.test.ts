// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {CaptureLayout} from './capture_layout';
import {buildSpans} from './frame_builder';
import {NameTable} from './name_table';
import {RowFilter} from './row_filter';
import {SpanTile} from './span_tile';
import {TimeBase} from './time_base';
import {TrackTree} from './track_tree';

const kBase = new TimeBase('1000');

function makeTree(): TrackTree {
  const streams =
      [0, 1, 2, 3].map(gid => ({
                         number: gid + 4,
                         instance: gid >> 1,
                         kind: 'core',
                         label: `gid ${gid}`,
                         gid,
                         begin_ns: '1000',
                         end_ns: '2000',
                         gaps: [{begin_ns: '1100', end_ns: '1200', events: '17', kind: 'nonsense', reason: '<b>'}],
                       }));
  const tree = new TrackTree(new CaptureLayout(
      {
        capture: {id: 'c'},
        version: '7',
        begin_ns: '1000',
        end_ns: '2000',
        instances: [{id: 'i-0'}, {id: 'i-1'}],
        streams,
      },
      kBase));
  const items = [{start: 0, duration: 1}];
  tree.learnRows(new SpanTile(
      buildSpans(
          {from: '1000', to: '2000'},
          [
            {fields: {stream: 5, row: 18, name: 'engines', order: 1}, items},
            {fields: {stream: 5, row: 17, name: 'thread', depth: 3}, items},
          ]),
      kBase, new NameTable()));
  tree.build();
  return tree;
}

const keys = (tree: TrackTree): string[] => tree.tracks.map(track => `${track.key}@${track.top}`);

test('instances, ranks, and the rows of expanded ranks in their order', () => {
  const tree = makeTree();
  assert.deepEqual(keys(tree), ['i0@0', 's4@1', 's5@2', 'i1@3', 's6@4', 's7@5']);
  tree.expanded.add(5);
  tree.build();
  assert.deepEqual(keys(tree), ['i0@0', 's4@1', 's5@2', 'r5.17@3', 'r5.18@6', 'i1@7', 's6@8', 's7@9']);
  assert.equal(tree.units, 10);
  assert.deepEqual(
      [0, 3, 5, 6, 9, 99].map(unit => tree.tracks[tree.trackAt(unit)].key),
      ['i0', 'r5.17', 'r5.17', 'r5.18', 's7', 's7']);
  assert.equal(tree.find(5, 18)?.key, 'r5.18');
  assert.equal(tree.find(6, 18)?.key, 's6');
});

test('hidden, pinned and collapsed', () => {
  const tree = makeTree();
  tree.hidden.add(4);
  tree.pinned.add(6);
  tree.collapsedInstances.add(0);
  tree.build();
  assert.deepEqual(keys(tree), ['i0@0', 'i1@1', 's7@2']);
  assert.deepEqual(tree.pinnedTracks.map(track => track.key), ['s6']);
  assert.equal(tree.tracks[0].count, 1);
});

test('the filter keeps ranks by number, word and row', () => {
  const tree = makeTree();
  tree.expanded.add(5);
  const shown = (text: string): string[] => {
    tree.filter = new RowFilter(text);
    tree.build();
    return tree.tracks.filter(track => track.kind !== 'instance').map(track => track.key);
  };
  assert.deepEqual(shown('rank:2-3'), ['s6', 's7']);
  assert.deepEqual(shown('GID -i-1'), ['s4', 's5', 'r5.17', 'r5.18']);
  assert.deepEqual(shown('engines rank:1'), ['s5', 'r5.18']);
  assert.deepEqual(shown('engines thread'), []);
  assert.deepEqual(shown('rank:9'), []);
});

test('the filter accepts ranks while no rows are known, and takes unknown ranks for ones like the others', () => {
  const tree = makeTree();
  tree.filter = new RowFilter('engines');
  tree.build();
  assert.deepEqual(
      tree.tracks.filter(track => track.kind === 'rank').map(track => track.key), ['s4', 's5', 's6', 's7']);
  const fresh = new TrackTree(tree.layout);
  fresh.filter = new RowFilter('anything');
  fresh.build();
  assert.equal(fresh.tracks.length, 6);
});

test('a layout takes any text and kind for what it is', () => {
  const {layout} = makeTree(), gap = layout.streams[0].gaps[0];
  assert.deepEqual([gap.from, gap.to, gap.events, gap.kind, gap.reason], [100, 200, 17, 'loss', '<b>']);
  assert.equal(layout.index(99), -1);
  assert.equal(new CaptureLayout({streams: [{}], instances: 'x'} as never, kBase).streams[0].kind, 'other');
});
