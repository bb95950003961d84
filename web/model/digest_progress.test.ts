// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {DigestProgress} from './digest_progress';
import {buildSpans} from './frame_builder';
import {NameTable} from './name_table';
import {SpanTile} from './span_tile';
import {TimeBase} from './time_base';

const kBegin = 1795807991714858703n, kCapture = {
  begin: 0,
  end: 1000
};
const kBase = new TimeBase(String(kBegin));

function tile(stream: number, digested: number, scanned: number, from = 0): SpanTile {
  return new SpanTile(
      buildSpans(
          {
            from: String(kBegin + BigInt(from)),
            to: String(kBegin + 1001n),
            digested_chunks: digested,
            scanned_chunks: scanned
          },
          [{fields: {row: 17, stream}, items: [{start: 1, duration: 5}]}]),
      kBase, new NameTable());
}

test('adds up the answers about all blocks of streams', () => {
  const progress = new DigestProgress();
  assert.equal(progress.text, '');
  progress.learn(tile(0, 900, 116), kCapture);
  assert.equal(progress.text, '916 of 1,016 chunks digested; answers read the others');
  progress.learn(tile(16, 0, 516), kCapture);
  assert.equal(progress.text, '932 of 1,532 chunks digested; answers read the others');
  // The thread has caught up; the groups at the capture's ends are read as ever.
  progress.learn(tile(0, 1000, 16), kCapture);
  progress.learn(tile(16, 500, 16), kCapture);
  assert.equal(progress.text, '');
});

test('is silent about small captures and parts of a capture', () => {
  const progress = new DigestProgress();
  progress.learn(tile(0, 0, 400), kCapture);
  assert.equal(progress.text, '');
  progress.learn(tile(0, 0, 4000, 500), kCapture);
  assert.equal(progress.text, '');
});
