// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {StacksMessage} from './insight_types';
import {stackLines, stacksTitle} from './stacks';

const kReport: StacksMessage = {
  job: 'llama',
  members: [{}, {}, {}, {}],
  nodes: [
    {function: 'main', file: 'train.py', members: [0, 1, 2, 3], isMain: true},
    {depth: 1, function: 'all_reduce', members: [0, 1, 2], isMain: true},
    {depth: 1, members: [3], isMinority: true, isMain: true},
  ],
};

test('a line names the frame and how many workers reach it', () => {
  const {lines, left} = stackLines(kReport);
  assert.deepEqual(lines, [
    {depth: 0, text: 'main (train.py)', isMinority: false, members: '4 of 4'},
    {depth: 1, text: 'all_reduce', isMinority: false, members: '3 of 4'},
    {depth: 1, text: '(ends here)', isMinority: true, members: '1 of 4'},
  ]);
  assert.equal(left, 0);
});

test('what is not shown is counted, and depth is limited', () => {
  const nodes = Array.from({length: 500}, (_, depth) => ({depth, function: 'f', members: [0]}));
  const {lines, left} = stackLines({members: [{}], nodes, nodesLeftOut: '7'});
  assert.equal(lines.length, 400);
  assert.equal(left, 107);
  assert.equal(Math.max(...lines.map(line => line.depth)), 40);
});

test('the title says who has not answered', () => {
  assert.equal(stacksTitle(kReport), 'Stacks of 4 workers of llama');
  assert.equal(stacksTitle({members: [{}], pending: 1}), 'Stacks of 1 worker, 1 has not answered yet');
  assert.equal(stacksTitle({}), 'Stacks of 0 workers');
});
