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

const keys = (tree: TrackTree): string[] => tree.tracks.map(track => `${track.key}@${tree.topOf(track)}`);

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
  tree.collapsed.add('i0');
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
    return tree.tracks.filter(track => track.kind !== 'group').map(track => track.key);
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

// Two instances with two processes of two ranks each, and a host; ranks descend so that orders differ.
function makeFleet(): TrackTree {
  const streams = [7, 6, 5, 4, 3, 2, 1, 0].map((gid, i) => ({
                                                 number: 10 + i,
                                                 instance: i >> 2,
                                                 kind: 'core',
                                                 process: `pid ${i >> 1}`,
                                                 job: gid % 2 ? 'odd' : 'even',
                                                 label: `gid${gid}`,
                                                 gid,
                                                 core: i % 4,
                                               }));
  const host = {number: 99, instance: 0, kind: 'host', label: 'host'};
  const tree = new TrackTree(new CaptureLayout(
      {
        version: '7',
        begin_ns: '1000',
        end_ns: '2000',
        instances: [{id: 'i-0'}, {id: 'i-1'}],
        streams: [...streams.slice(0, 4), host, ...streams.slice(4)]
      },
      kBase));
  return tree;
}

const items = [{start: 0, duration: 1}];

function learn(tree: TrackTree, stream: number, gid: number): boolean {
  return tree.learnRows(new SpanTile(
      buildSpans(
          {from: '1000', to: '2000'},
          [
            {fields: {stream, row: 1, name: `gid${gid}-nc0-tid${gid * 3}-neuron_rt`, depth: 2}, items},
            {fields: {stream, row: 2, name: `gid${gid}-nc0-tid1-core4-neuron_hw`, source: 'hardware', order: 1}, items},
            {fields: {stream, row: 3, name: `gid${gid}-nc0 steps (derived)`, order: 2}, items},
          ]),
      kBase, new NameTable()));
}

const labels = (tree: TrackTree): string[] => tree.tracks.map(track => '  '.repeat(track.level - 1) + track.label);

test('groups by instance and process, rank, job and core', () => {
  const tree = makeFleet();
  tree.build();
  assert.deepEqual(labels(tree), [
    'i-0', '  pid 0', '    gid7', '    gid6', '  pid 1', '    gid5', '    gid4', '  host', 'i-1', '  pid 2', '    gid3',
    '    gid2', '  pid 3', '    gid1', '    gid0'
  ]);
  tree.collapsed.add('p0:pid 1');
  tree.build();
  assert.ok(!labels(tree).includes('    gid5'));
  assert.equal(tree.shownStreams, 9);
  tree.grouping = 'rank';
  tree.build();
  assert.deepEqual(
      labels(tree), ['gid0', 'gid1', 'gid2', 'gid3', 'gid4', 'gid5', 'gid6', 'gid7', 'Without a rank', '  host']);
  tree.grouping = 'job';
  tree.build();
  assert.deepEqual(labels(tree), [
    'odd', '  gid1', '  gid3', '  gid5', '  gid7', 'even', '  gid0', '  gid2', '  gid4', '  gid6', 'Without a job',
    '  host'
  ]);
  tree.grouping = 'core';
  tree.build();
  assert.deepEqual(labels(tree).slice(0, 3), ['nc 0', '  gid3', '  gid7']);
  assert.deepEqual(tree.streamsOf(tree.tracks[0]).sort(), [10, 14]);
});

test('groups rows of one name across ranks, whatever their threads, and places ranks that are not loaded', () => {
  const tree = makeFleet();
  tree.grouping = 'name';
  tree.build();
  assert.equal(tree.tracks.length, 9, 'ranks, until any row is known');
  assert.equal(learn(tree, 10, 7), true);
  tree.rebuild();
  assert.deepEqual(
      tree.tracks.filter(track => track.kind === 'group').map(track => `${track.label} ${track.count}`),
      ['neuron_rt 8', 'neuron_hw 8', 'steps (derived) 8']);
  assert.equal(tree.tracks[8].label, 'gid7 · tid21-neuron_rt');
  assert.deepEqual([tree.tracks[7].label, tree.tracks[7].row?.row], ['gid6', -1]);
  learn(tree, 11, 6);
  tree.rebuild();
  assert.deepEqual([tree.tracks[7].label, tree.tracks[7].row?.row], ['gid6 · tid18-neuron_rt', 1]);
  tree.grouping = 'kind';
  tree.build();
  assert.deepEqual(
      tree.tracks.filter(track => track.kind === 'group').map(track => track.label),
      ['Runtime threads', 'Hardware', 'Steps']);
});

test('sections of a rank, each and on all ranks', () => {
  const tree = makeFleet();
  tree.grouping = 'rank';
  learn(tree, 10, 7);
  learn(tree, 11, 6);
  tree.expanded.add(10).add(11);
  tree.build();
  const below = (gid: string): string[] => {
    const at = tree.tracks.findIndex(track => track.label === gid);
    const end = tree.tracks.findIndex((track, i) => i > at && track.level === 1);
    return tree.tracks.slice(at + 1, end).map(track => track.label);
  };
  assert.deepEqual(
      below('gid6'),
      ['Runtime threads', 'tid18-neuron_rt', 'Hardware', 'tid1-core4-neuron_hw', 'Steps', 'steps (derived)']);
  tree.setSection('hardware', false);
  tree.toggleSection(10, 'runtime');
  tree.toggleSection(10, 'hardware');
  tree.build();
  assert.deepEqual(below('gid7').slice(0, 3), ['Runtime threads', 'Hardware', 'tid1-core4-neuron_hw']);
  assert.deepEqual(below('gid6').slice(0, 4), ['Runtime threads', 'tid18-neuron_rt', 'Hardware', 'Steps']);
  tree.setSection('hardware', true);
  assert.equal(tree.isSectionOpen(10, 'hardware'), true);
});

test('single rows are pinned, hidden, and revealed', () => {
  const tree = makeFleet();
  learn(tree, 10, 7);
  tree.expanded.add(10);
  tree.hiddenRows.add('10.2');
  tree.pinnedRows.add('10.3').add('11.17');
  tree.build();
  assert.ok(!tree.tracks.some(track => track.row?.row === 2 || track.row?.row === 3));
  assert.deepEqual(tree.pinnedTracks.map(track => track.label), ['gid7 · steps (derived)', 'gid6 · row 17']);
  assert.equal(tree.pinnedUnits, 2);
  assert.equal(tree.tracks.some(track => track.kind === 'section'), false, 'one kind is left');
  tree.collapsed.add('i0');
  tree.hidden.add(10);
  tree.reveal(10, 2);
  tree.build();
  assert.equal(tree.find(10, 2)?.key, 'r10.2');
  assert.equal(tree.hiddenRows.size, 0);
});
