// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {mayChangeRetention, parseRetention, Retention, retentionInput, retentionText} from './retention';

const kDayNs = 86400n * 10n ** 9n;
const kEnded: Retention = {
  isContinuous: false,
  isLive: false,
  retentionNs: 30n * kDayNs,
  stoppedNs: 10n ** 18n
};

test('what is shown of a retention depends on the kind of capture and on its end', () => {
  assert.equal(retentionText(kEnded), 'for 30 d after its end, until about 2001-10-09 01:46:40 UTC');
  assert.equal(retentionText({...kEnded, stoppedNs: 0n, isLive: true}), 'for 30 d after its end');
  assert.equal(retentionText({...kEnded, retentionNs: 0n}), 'until somebody deletes it');
  const continuous = {...kEnded, isContinuous: true, isLive: true, retentionNs: 600n * 10n ** 9n};
  assert.equal(retentionText(continuous), 'events of the last 10 min');
  assert.equal(retentionText({...continuous, retentionNs: 0n}), 'until the space chosen at its start is full');
  assert.equal(retentionText({...continuous, isLive: false}), 'until somebody deletes it');
});

test('only a continuous capture that has ended cannot be changed', () => {
  assert.ok(mayChangeRetention(kEnded));
  assert.ok(mayChangeRetention({...kEnded, isContinuous: true, isLive: true}));
  assert.ok(!mayChangeRetention({...kEnded, isContinuous: true}));
});

test('what the dialog shows can be read back', () => {
  for (const ns of [0n, 1n, 1500n * 10n ** 6n, 30n * kDayNs, 365n * kDayNs])
    assert.deepEqual(parseRetention(retentionInput(ns)), {ns: String(ns)});
});

test('times are read in days, and what is no time is explained', () => {
  assert.deepEqual(parseRetention(' 30d '), {ns: String(30n * kDayNs)});
  assert.deepEqual(parseRetention('Forever'), {ns: '0'});
  for (const text of ['', '30', 'soon', '-1d', '0s', '1e9d', '999999999d'])
    assert.ok('problem' in parseRetention(text), text);
});
