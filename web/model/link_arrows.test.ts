// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {arrowBetween, orderOf} from './link_arrows';
import {formatValue} from './text_format';

const kCall = {
  from: 100,
  to: 900
},
      kInside = {
        from: 150,
        to: 200
      },
      kAfter = {
        from: 1000,
        to: 1500
      };

test('an arrow leaves a cause that still runs where its effect begins', () => {
  assert.deepEqual(
      arrowBetween(kCall, kInside, 'downstream', 'exec_id'), {own: 150, other: 150, isOwnHead: false, hasHead: true});
  assert.deepEqual(
      arrowBetween(kInside, kCall, 'upstream', 'exec_id'), {own: 150, other: 150, isOwnHead: true, hasHead: true});
});

test('an arrow leaves a cause that has ended at its end', () => {
  assert.deepEqual(
      arrowBetween(kCall, kAfter, 'downstream', 'exec_id'), {own: 900, other: 1000, isOwnHead: false, hasHead: true});
  assert.deepEqual(
      arrowBetween(kAfter, kCall, 'upstream', 'exec_id'), {own: 1000, other: 900, isOwnHead: true, hasHead: true});
});

test('an effect that seems to begin before its cause keeps its time', () => {
  assert.deepEqual(
      arrowBetween(kAfter, kCall, 'downstream', 'arrow'), {own: 1000, other: 100, isOwnHead: false, hasHead: true});
});

test('ranks of a collective are connected where they arrive, without a head if the order is not known', () => {
  assert.deepEqual(
      arrowBetween(kCall, kInside, 'upstream', 'collective'), {own: 100, other: 150, isOwnHead: true, hasHead: true});
  assert.deepEqual(
      arrowBetween(kCall, kInside, 'peer', 'collective'), {own: 100, other: 150, isOwnHead: false, hasHead: false});
});

test('the order of two events is written out', () => {
  const format = (ns: number): string => `${ns} ns`;
  assert.equal(orderOf(100, 150, format), '50 ns later');
  assert.equal(orderOf(100, 50, format), '50 ns earlier');
  assert.equal(orderOf(100, 100, format), 'at the same time');
});

test('values of counters are written with their unit', () => {
  assert.equal(formatValue(12_340_000_000, 'B'), '12.34 GB');
  assert.equal(formatValue(1_500_000, 'ns'), '1.5 ms');
  assert.equal(formatValue(37.123456, '%'), '37.12 %');
  assert.equal(formatValue(7, ''), '7');
});
