// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {Query} from '../api/api_client';
import {EventEntry, EventsReply} from '../api/api_types';
import {Insight} from '../model/insight';
import {InsightMessage} from '../model/insight_types';

import {ChosenSpan, TimelineHost} from './timeline_host';
import {TimelineState} from './timeline_state';
import {VerdictJump} from './verdict_jump';

const kRanks = 8;
const kEnd = 1_000_000_000;

// Eight ranks of a job and one of another.
const kLayout = {
  begin_ns: '1',
  end_ns: String(1 + kEnd),
  instances: [{id: 'i-a'}],
  streams: Array.from(
      {length: kRanks + 1},
      (_, i) => ({number: 4 + i, kind: 'core', gid: i, core: i, instance: 0, job: i < kRanks ? 'train' : 'eval'}))
};

// A page whose aggregator has one event.
class FakeHost {
  readonly state = new TimelineState('01JD', kLayout);
  readonly asked: Query[] = [];
  readonly said: string[] = [];
  readonly toasts = {say: (text: string) => void this.said.push(text), fail: () => undefined};
  readonly api = {events: (_: string, query: Query) => this.events(query)};
  stored: EventEntry[] = [];
  span: ChosenSpan|null = null;
  panel = '';

  private events(query: Query): Promise<EventsReply> {
    this.asked.push(query);
    return Promise.resolve({events: this.stored, next: '', scanned_chunks: 1});
  }

  tracksChanged(): void {
    this.state.tree.build();
  }

  overlayChanged(): void {}

  chooseSpan(span: ChosenSpan|null): void {
    this.span = span;
  }

  reveal(stream: number, row: number, from: number, to: number): void {
    this.state.tree.reveal(stream, row);
    this.state.viewport.reveal(from, to);
  }

  openPanel(name: string): void {
    this.panel = name;
  }

  report(message: InsightMessage): void {
    this.state.insight = new Insight(message, this.state.layout, this.state.base);
  }
}

function jumpOf(host: FakeHost): VerdictJump {
  return new VerdictJump(host as unknown as TimelineHost);
}

function settled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve));
}

function suspects(...gids: number[]): {job: string, workerGid: string}[] {
  return gids.map(gid => ({job: 'train', workerGid: String(gid)}));
}

const kExecution = {
  stream: 6,
  row: 17,
  name: 'nc_exec_running',
  type: 'nc_exec_running',
  phase: 'span',
  start_ns: '400000001',
  end_ns: '400001001',
  duration_ns: '1000'
};

test('shows the time and the rank, and removes the pins of the verdict before', async () => {
  const host = new FakeHost(), jump = jumpOf(host), {tree, viewport} = host.state;
  host.report({
    verdicts: [
      {kind: 'VERDICT_KIND_SLOW_CORE', suspects: suspects(2), sinceNs: '200000001', untilNs: '600000001'},
      {kind: 'VERDICT_KIND_SLOW_HOST', suspects: suspects(0, 1, 4, 5, 6, 7), sinceNs: '1', untilNs: '100000001'}
    ]
  });
  tree.hidden.add(6);
  tree.pinned.add(12);  // by a person
  jump.show(0);
  assert.deepEqual([...tree.pinned], [12, 6]);
  assert.ok(tree.expanded.has(6) && !tree.hidden.has(6));
  assert.ok(viewport.from <= 2e8 && viewport.to >= 6e8 && viewport.span < 5e8);
  assert.equal(host.state.verdict, 0);
  jump.show(1);
  assert.deepEqual([...tree.pinned], [12, 4, 5, 8, 9]);
  await settled();
  assert.deepEqual(host.asked, [], 'neither names an execution');
});

test('a person’s own pin of a suspect stays', () => {
  const host = new FakeHost(), jump = jumpOf(host);
  host.report({verdicts: [{suspects: suspects(2)}, {suspects: suspects(3)}]});
  host.state.tree.pinned.add(6);
  jump.show(0);
  jump.show(1);
  assert.deepEqual([...host.state.tree.pinned], [6, 7]);
});

test('the execution that shows it is chosen without a move, and zoomed to on request', async () => {
  const host = new FakeHost(), jump = jumpOf(host), {viewport} = host.state;
  host.stored = [{...kExecution, type: 'nrt_execute', start_ns: '399999001', duration_ns: '3000'}, kExecution];
  host.report({
    verdicts: [{
      kind: 'VERDICT_KIND_SLOW_CORE',
      suspects: suspects(2),
      sinceNs: '200000001',
      untilNs: '600000001',
      stepNs: '1000000',
      phase: 'device',
      execId: '42',
      opId: '17'
    }]
  });
  jump.show(0);
  const before = [viewport.from, viewport.to];
  await settled();
  const q = 'arg:exec_id=42', streams = '6';
  assert.deepEqual(host.asked, [
    {q, streams, from: '200000001', to: '600000002', limit: 1},
    // A step before and after the first event.
    {q, streams, from: '398999001', to: '401002001', limit: 500}
  ]);
  assert.deepEqual([host.span?.stream, host.span?.row, host.span?.from, host.span?.to], [6, 17, 4e8, 400001000]);
  assert.deepEqual([viewport.from, viewport.to], before);
  jump.showEvidenceOf(0);
  await settled();
  assert.ok(host.span?.from === 4e8 && host.state.tree.pinned.has(6));
  assert.ok(viewport.from <= 399999000 && viewport.to >= 400002000 && viewport.span < 5000, 'all of the execution');
});

test('the collective of a hang is looked for on ranks that wait', async () => {
  const host = new FakeHost();
  host.report({verdicts: [{kind: 'VERDICT_KIND_HANG_NOT_ENTERED', suspects: suspects(2), opId: '17'}]});
  jumpOf(host).showEvidenceOf(0);
  await settled();
  assert.equal(host.asked[0].streams, '4,5,7,8,9,10,11');
  assert.deepEqual(host.said, ['The event that shows this verdict is not among the stored ones.']);
});

test('an uneven role names no rank, so that none is pinned', () => {
  const host = new FakeHost();
  host.report({verdicts: [{kind: 'VERDICT_KIND_UNEVEN_ROLE', suspects: suspects(0, 1)}]});
  jumpOf(host).show(0);
  assert.equal(host.state.tree.pinned.size, 0);
});

test('the heat map has the metric that shows the verdict', () => {
  const host = new FakeHost();
  host.report({verdicts: [{kind: 'VERDICT_KIND_SLOW_COLLECTIVE', suspects: suspects(0)}]});
  jumpOf(host).showOnHeatMap(0);
  assert.deepEqual([host.panel, host.state.metric, host.state.verdict], ['heat', 'wait', 0]);
  jumpOf(host).showOnHeatMap(5);
  assert.equal(host.state.verdict, 0);
});
