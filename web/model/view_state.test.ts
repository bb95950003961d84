// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {formatRanges, parseRanges} from './number_ranges';
import {nameTerm, parseQuery} from './query';
import {csvField, fileName, safeText} from './safe_text';
import {axisStep, formatAxisTime, formatCount, formatDuration, formatMoment, parseDuration} from './text_format';
import {emptyViewState, formatViewState, parseViewState} from './view_state';
import {Viewport} from './viewport';

test('a view survives the URL', () => {
  const state = {
    ...emptyViewState(),
    from: '1795807991714858703',
    to: '1795807991714868703',
    open: [4, 5, 6, 9],
    pinned: [13],
    grouping: 'name' as const,
    closedGroups: ['nruntime:neuron_rt', 'j:a,b & c'],
    closedSections: ['counters', 'steps'],
    flippedSections: ['4/steps'],
    pinnedRows: ['4.2251799813685247'],
    hiddenRows: ['5.17', '6.-3'],
    picks: [{stream: 4, row: 17, ns: '1795807991714858704', duration: 500, self: 200, name: 'a.b <c>'}],
    filter: 'rank:8-15 -host',
    query: 'dur>10ms "two words"',
    span: {stream: 4, row: 2251799813685247, ns: '1795807991714858704', id: '4-1795807991714858704-2718281828'},
    box: {from: '1', to: '2', streams: [1, 2, 3]},
    tool: 3,
    panel: 'heat',
    metric: 'wait',
    by: 'step',
    sort: 'worst',
    markers: [{name: 'a.b & <c>', ns: '12'}],
    why: '1795807991714858703.1795807991714868703',
    whyJob: 'llama & co',
    verdict: 2,
    bands: false,
    follow: true,
    top: 7
  };
  assert.deepEqual(parseViewState(formatViewState(state)), state);
  assert.equal(formatViewState(emptyViewState()), '');
});

test('a malformed URL is an empty view', () => {
  assert.deepEqual(
      parseViewState(
          'from=x&to=-1&open=a&group=evil&sections=evil&flip=4/evil&pinrow=x&hiderow=1.2.3&pick=1.2&span=1.2&box=1&tool=9&panel=evil&metric=x&m=x&why=1.&verdict=-2&bands=x&top=-4'),
      {...emptyViewState(), tool: 4});
  assert.equal(parseRanges('0-999999999', 1000).length, 1000);
});

test('ranges of numbers', () => {
  assert.equal(formatRanges([9, 4, 6, 5, 5]), '4-6,9');
  assert.deepEqual(parseRanges('4-6, 9,x,7-'), [4, 5, 6, 9]);
});

test('zoom keeps the time under the pointer, pan and zoom have ends', () => {
  const view = new Viewport(0, 1e9);
  view.show(1e8, 5e8);
  const before = view.timeAt(300, 1000);
  view.zoom(0.5, 0.3);
  assert.ok(Math.abs(view.timeAt(300, 1000) - before) < 1e-3);
  assert.equal(Math.round(view.span), 2e8);
  for (let i = 0; i < 200; ++i) view.zoom(0.5, 0.5);
  assert.equal(view.span, 50);
  for (let i = 0; i < 200; ++i) view.zoom(2, 0.5);
  assert.ok(view.span <= 1.5e9);
  view.show(0, 1e8);
  for (let i = 0; i < 100; ++i) view.pan(1);
  assert.ok(view.from < 1e9 && view.to > 1e9);
  view.show(5e8, 5e8 + 1000);
  assert.equal(view.xOf(view.timeAt(123, 1600), 1600).toFixed(3), '123.000');
});

test('the query grammar', () => {
  assert.deepEqual(
      parseQuery('all_reduce rank:8-15 -"two words" dur>10ms arg:op=x')
          .terms.map(term => [term.kind, term.value, term.negated]),
      [
        ['word', 'all_reduce', false], ['rank', '8-15', false], ['word', 'two words', true], ['dur', '>10ms', false],
        ['arg', 'op=x', false]
      ]);
  for (const bad of ['rank:x', 'dur>10x', 'arg:x', 'core:a', 'type:'])
    assert.notEqual(parseQuery(bad).problem, '', bad);
  assert.equal(parseQuery('http://host').problem, '');
  assert.equal(parseQuery(nameTerm('a "b" c')).terms[0].value, 'a b c');
});

test('hostile names are shown as they are, and do nothing', () => {
  assert.equal(safeText('\u202egnp.exe'), '\\u202egnp.exe');
  assert.equal(safeText('\u001b[31mred'), '\\u001b[31mred');
  assert.equal(
      safeText('\u00ad\u061c\u200b\u2028\u2029\u2066\u206f\ufeff\ufff9\u{e0001}'),
      '\\u00ad\\u061c\\u200b\\u2028\\u2029\\u2066\\u206f\\ufeff\\ufff9\\u{e0001}');
  assert.equal(safeText('a\nb\tc größe 日本 😀'), 'a b c größe 日本 😀');
  assert.equal(safeText('x'.repeat(65536), 100).length, 101);
  assert.equal(safeText(undefined), '');
  assert.equal(csvField('=HYPERLINK("x")'), `"'=HYPERLINK(""x"")"`);
  assert.equal(csvField('-5'), '-5');
  assert.equal(fileName('../../etc/passwd', '.csv'), 'etc_passwd.csv');
});

test('numbers as people read them', () => {
  assert.deepEqual(
      [0, 999, 1500, 12345678, 90e9].map(formatDuration), ['0 ns', '999 ns', '1.5 µs', '12.35 ms', '1.5 min']);
  assert.equal(formatMoment(5750208312), '5.750208312 s');
  assert.equal(formatMoment(5750000000), '5.750000 s');
  assert.equal(formatCount(1234567), '1,234,567');
  assert.equal(axisStep(1000, 110), 200000);
  assert.equal(formatAxisTime(1.5e9, 5e8), '1.5 s');
  assert.deepEqual(['30s', '1.5 min', '250us', '5'].map(parseDuration), [30e9, 90e9, 250e3, null]);
});
