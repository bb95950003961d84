// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {CaptureFilter, tagFilter} from './capture_filter';

const kTags = ['baseline', 'Needs Review', 'ticket=17'];

function isFound(filter: string): boolean {
  return new CaptureFilter(filter).matches('01ABC Night run llama complete ' + kTags.join(' '), kTags);
}

test('all words have to be there, in either case', () => {
  assert.ok(isFound(''));
  assert.ok(isFound('  night LLAMA '));
  assert.ok(isFound('base'));
  assert.ok(isFound('"night run"'));
  assert.ok(!isFound('night mixtral'));
  assert.ok(!isFound('"run night"'));
});

test('a tag is found as a whole', () => {
  assert.ok(isFound('tag:baseline llama'));
  assert.ok(isFound('tag:ticket=17'));
  assert.ok(isFound('tag:"needs review"'));
  assert.ok(isFound('tag:"needs review'));
  assert.ok(!isFound('tag:base'));
  assert.ok(!isFound('tag:needs'));
  assert.ok(!isFound('tag:llama'));
  assert.ok(!isFound('tag:'), 'a word, like any other');
});

test('the filter of a tag finds it', () => {
  for (const tag of kTags) assert.ok(isFound(tagFilter(tag)), tag);
  assert.equal(tagFilter('needs review'), 'tag:"needs review"');
});

test('a tag with quotation marks is found without them', () => {
  assert.ok(new CaptureFilter(tagFilter('a "b" c')).matches('', ['a "b" c']));
});
