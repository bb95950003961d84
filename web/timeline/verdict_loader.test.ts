// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {ApiClient, Query} from '../api/api_client';
import {ApiError} from '../api/api_error';
import {InsightMessage} from '../model/insight_types';

import {TimelineState} from './timeline_state';
import {VerdictLoader} from './verdict_loader';

const kLayout = {
  begin_ns: '1000',
  end_ns: '2000',
  version: '7',
  instances: [{id: 'i-a'}],
  streams: [{number: 4, kind: 'core', gid: 13, core: 0, instance: 0}]
};

// An aggregator that answers when a test says so.
class FakeApi {
  readonly asked: Query[] = [];
  readonly signals: AbortSignal[] = [];
  private readonly waiting: {resolve(report: InsightMessage): void, reject(error: unknown): void}[] = [];

  why(_: string, query: Query, signal: AbortSignal): Promise<InsightMessage> {
    this.asked.push(query);
    this.signals.push(signal);
    return new Promise((resolve, reject) => this.waiting.push({resolve, reject}));
  }

  async answer(number: number, report: InsightMessage): Promise<void> {
    this.waiting[number].resolve(report);
    await settled();
  }

  async fail(number: number, error: unknown): Promise<void> {
    this.waiting[number].reject(error);
    await settled();
  }
}

// What follows a promise has run.
function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve));
}

function setUp(): {api: FakeApi, state: TimelineState, loader: VerdictLoader, changes: () => number} {
  const api = new FakeApi(), state = new TimelineState('01JD', kLayout);
  let changes = 0;
  const loader = new VerdictLoader(api as unknown as ApiClient, state, {verdictsChanged: () => void ++changes});
  return {api, state, loader, changes: () => changes};
}

const kReport: InsightMessage = {
  verdicts: [{kind: 'VERDICT_KIND_SLOW_CORE', suspects: [{workerGid: '13'}]}]
};

test('asks for the whole capture without times, and for a stretch with them', async () => {
  const {api, state, loader, changes} = setUp();
  loader.ask('all', '');
  assert.ok(loader.isLoading);
  await api.answer(0, kReport);
  assert.ok(!loader.isLoading);
  assert.deepEqual(state.insight?.verdicts[0].streams, [4]);
  assert.equal(state.insightVersion, '7');
  assert.equal(changes(), 2);
  loader.ask('1200.1300', 'train');
  assert.equal(state.insight, null);
  assert.deepEqual(api.asked, [{}, {from: '1200', to: '1300', job: 'train'}]);
});

test('the answer of a question that was superseded is dropped', async () => {
  const {api, state, loader} = setUp();
  loader.ask('all', '');
  loader.ask('1200.1300', '');
  assert.ok(api.signals[0].aborted);
  await api.answer(0, kReport);
  assert.equal(state.insight, null);
  assert.ok(loader.isLoading);
  await api.answer(1, {});
  assert.deepEqual(state.insight!.verdicts, []);
});

test('a failure is kept until the next question', async () => {
  const {api, state, loader} = setUp();
  loader.ask('all', '');
  await api.fail(0, new ApiError(429, 'RESOURCE_EXHAUSTED', 'too many questions', 'Try again in 1 s.'));
  assert.deepEqual(loader.problem, {message: 'too many questions', hint: 'Try again in 1 s.'});
  assert.ok(!loader.isLoading);
  loader.ask('all', '');
  assert.equal(loader.problem, null);
  await api.answer(1, kReport);
  assert.equal(state.insight?.verdicts.length, 1);
});

test('a verdict of the address stays chosen if the answer has it', async () => {
  const {api, state, loader} = setUp();
  loader.ask('all', '', 0);
  await api.answer(0, kReport);
  assert.equal(state.verdict, 0);
  loader.ask('all', '', 1);
  await api.answer(1, kReport);
  assert.equal(state.verdict, -1);
});

test('a closed loader changes nothing', async () => {
  const {api, loader, changes} = setUp();
  loader.ask('all', '');
  loader.close();
  assert.ok(api.signals[0].aborted);
  await api.fail(0, new DOMException('aborted', 'AbortError'));
  assert.equal(changes(), 1);
});

test('a newer layout places the verdicts again', async () => {
  const {api, state, loader} = setUp();
  loader.ask('all', '');
  await api.answer(0, {verdicts: [{suspects: [{workerGid: '14'}]}]});
  assert.deepEqual(state.insight?.verdicts[0].streams, []);
  state.updateLayout(
      {...kLayout, streams: [...kLayout.streams, {number: 5, kind: 'core', gid: 14, core: 1, instance: 0}]});
  assert.deepEqual(state.insight?.verdicts[0].streams, [5]);
});
