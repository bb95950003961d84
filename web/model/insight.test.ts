// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {CaptureLayout} from './capture_layout';
import {buildFrame} from './frame_builder';
import {HeatGrid} from './heat_grid';
import {heatMarks} from './heat_marks';
import * as model from './insight';
import {Insight} from './insight';
import {InsightMessage} from './insight_types';
import {TimeBase} from './time_base';

const kOrigin = 1795807991000000000n;
const kBase = new TimeBase(kOrigin.toString());

function at(ns: number): string {
  return (kOrigin + BigInt(ns)).toString();
}

function stream(number: number, gid: number|null, instance: number, core: number|null, job = 'train'): unknown {
  return {
    number,
    instance,
    kind: core === null ? 'host' : 'core',
    process: `pid ${800 + instance}`,
    job,
    label: `stream ${number}`,
    gid,
    core
  };
}

// Two jobs that both count ranks from 0, and a core without a rank.
const kLayout = new CaptureLayout(
    {
      begin_ns: at(0),
      end_ns: at(1000),
      instances: [{id: 'i-a'}, {id: 'i-b'}],
      streams: [
        stream(4, 0, 0, 0), stream(5, 1, 0, 1), stream(6, 0, 1, 0, 'eval'), stream(7, null, 1, 1, 'eval'),
        stream(8, null, 0, null)
      ]
    },
    kBase);

function insightOf(report: InsightMessage): Insight {
  return new Insight(report, kLayout, kBase);
}

test('suspects are found by rank and job, and by core where the rank is unknown', () => {
  const {verdicts: [byRank, byCore, elsewhere, nobody]} = insightOf({
    verdicts: [
      // Rank 0 is absent in proto3 JSON.
      {kind: 'VERDICT_KIND_SLOW_CORE', suspects: [{job: 'train', instanceId: 'i-a', pid: '800'}], suspectsTotal: 1},
      {kind: 'VERDICT_KIND_HANG_INSIDE', suspects: [{instanceId: 'i-b', pid: '801', workerGid: '-1', ncIdx: 1}]}, {
        kind: 'VERDICT_KIND_SLOW_HOST',
        suspects: [{job: 'train', workerGid: '1'}, {workerGid: '99'}],
        suspectsTotal: 80
      },
      {kind: 'VERDICT_KIND_UNEVEN_DATA'}
    ]
  });
  assert.deepEqual([byRank.streams, byRank.unplaced, byRank.kind, byRank.tone], [[4], 0, 'slow-core', 'slow']);
  assert.deepEqual([byCore.streams, byCore.tone], [[7], 'hang']);
  assert.deepEqual([elsewhere.streams, elsewhere.unplaced], [[5], 79]);
  assert.deepEqual([nobody.streams, nobody.unplaced, nobody.tone], [[], 0, 'uneven']);
});

test('times that a verdict lacks are those of the window that was judged', () => {
  const {verdicts, refusals} = insightOf({
    verdicts: [{sinceNs: at(200), untilNs: at(700)}, {sinceNs: at(300)}, {sinceNs: at(900), untilNs: at(800)}],
    refusals: [{reason: 'few-peers'}, {beginNs: at(5), endNs: at(6)}],
    beginNs: at(100),
    endNs: at(800)
  });
  assert.deepEqual(verdicts.map(({from, to}) => [from, to]), [[200, 700], [300, 800], [900, 900]]);
  assert.deepEqual(refusals.map(({from, to}) => [from, to]), [[100, 800], [5, 6]]);
  const {verdicts: [open]} = insightOf({verdicts: [{}]});
  assert.deepEqual([open.from, open.to], [0, 1000]);
});

test('refusals of some ranks are of these, those without ranks of all', () => {
  const insight = insightOf({
    refusals: [
      {reason: 'losses', cores: [{job: 'train', workerGid: '1'}], coresTotal: 1}, {reason: 'few-peers'},
      {reason: 'limit', coresTotal: 12}
    ]
  });
  assert.deepEqual(insight.refusalsOf(5).map(({message}) => message.reason), ['losses']);
  assert.deepEqual(insight.refusalsOf(4), []);
  assert.deepEqual(insight.refusalsOfAll.map(({message}) => message.reason), ['few-peers']);
});

test('a report without a verdict tells what was judged', () => {
  const report = {cores: 24, coresJudged: 24, executions: '1280', stepNs: '250000000', exposedWaitNs: '900000'};
  assert.equal(model.headline(report), 'Nobody to name');
  assert.equal(model.judgedText(report), '24 of 24 cores judged, 1,280 executions, step 250 ms');
  assert.equal(model.waitText(report), 'Ranks wait 900 µs of a step for others.');
  assert.match(model.waitText({...report, belowCost: true}), /900 µs .* too little to look for a cause/);
  assert.equal(model.headline({cores: 24}), 'Nothing was judged');
  assert.equal(model.waitText({cores: 24}), '');
  assert.equal(model.headline({verdicts: [{}, {}], coresJudged: 24}), '2 verdicts');
  assert.match(
      model.waitText({...report, verdicts: [{}], explainedWaitNs: '800000'}),
      /^Ranks wait 900 µs .*explain 800 µs of it\.$/);
});

test('ranks are listed to a limit, the rest is counted', () => {
  const cores = Array.from({length: 8}, (_, i) => ({workerGid: String(i + 8)}));
  assert.equal(model.coresText(cores, 70), 'gid 8, 9, 10, 11, 12, 13 and 64 more');
  assert.equal(model.coresText([{}], 1), 'gid 0');
  assert.equal(model.coresText([{workerGid: '-1', instanceId: 'i-b', ncIdx: 3}], 1), 'i-b nc 3');
  assert.equal(model.coresText([], 12), '12 cores');
  assert.equal(model.coresText([], 0), '');
  assert.equal(model.suspectsText({suspects: [{workerGid: '13'}]}), 'gid 13');
});

test('costs, evidence and names', () => {
  assert.equal(model.costShare({costNs: '118000000', stepNs: '472000000'}), 0.25);
  assert.equal(model.costShare({costNs: '2', stepNs: '1'}), 1);
  assert.ok(Number.isNaN(model.costShare({costNs: '2'})));
  assert.equal(
      model.evidenceQuery({kind: 'VERDICT_KIND_HANG_INSIDE', execId: '42', opId: '17'}), 'arg:exec_id=42 arg:op_id=17');
  assert.equal(model.evidenceQuery({kind: 'VERDICT_KIND_SLOW_COLLECTIVE', opId: '17'}), 'arg:op_id=17');
  // A slow rank is late before the collective, where others wait.
  assert.equal(model.evidenceQuery({kind: 'VERDICT_KIND_SLOW_CORE', execId: '42', opId: '17'}), 'arg:exec_id=42');
  assert.equal(model.evidenceQuery({execId: '0', opId: 'x'}), '');
  assert.equal(model.verdictKind({}), 'unknown');
  assert.deepEqual(
      ['hang-not-entered', 'dead-worker', 'device-error', 'uneven-role', 'input-stall'].map(model.toneOf),
      ['hang', 'hang', 'hang', 'uneven', 'slow']);
  assert.deepEqual(['slow-core', 'uneven-role', 'slow-collective'].map(model.heatMetricOf), ['late', 'step', 'wait']);
});

// An answer of /heat without cells that anybody reads here.
function grid(rows: number[], lines: number[], header: Record<string, unknown>): HeatGrid {
  const frame = {
    metric: 'late',
    unit: 'ns',
    columns: 4,
    from: at(0),
    to: at(1000),
    rows: rows.map(number => ({stream: number, gid: number})),
    lines,
    ...header
  };
  return new HeatGrid(buildFrame(frame, new Uint8Array(new Float32Array(lines.length * 8).buffer)), kBase);
}

const kMarked = insightOf({
  verdicts: [
    {kind: 'VERDICT_KIND_SLOW_CORE', suspects: [{job: 'train', workerGid: '1'}], sinceNs: at(250), untilNs: at(500)},
    {kind: 'VERDICT_KIND_SLOW_CORE', suspects: [{job: 'train'}], sinceNs: at(5000), untilNs: at(6000)}
  ],
  refusals: [{reason: 'losses', cores: [{job: 'eval', workerGid: '0'}], beginNs: at(900), endNs: at(2000)}]
});

test('a heat map marks the lines of suspects, and what was not judged', () => {
  const marks = heatMarks(grid([4, 5, 6], [0, 1, 2], {}), kMarked);
  assert.deepEqual(
      marks.map(({line, stream, left, right, verdict}) => [line, stream, left, right, verdict?.kind]),
      [[2, 6, 0.9, 1, undefined], [1, 5, 0.25, 0.5, 'slow-core']]);
  assert.equal(marks[0].refusal?.message.reason, 'losses');
});

test('a line of several ranks is marked if one of them is named', () => {
  const marks = heatMarks(grid([4, 5, 6], [0, 2], {}), kMarked);
  assert.deepEqual(marks.map(({line, stream}) => [line, stream]), [[1, 6], [0, 5]]);
});

test('by step, a mark covers the steps of its time', () => {
  const times = (list: number[]): string[] => list.map(at);
  const bySteps = {
    steps: ['0', '1', '2', '3'],
    step_begin_ns: [...times([0, 200, 400]), '0'],
    step_end_ns: [...times([200, 400, 600]), '0']
  };
  const marks = heatMarks(grid([5], [0], bySteps), kMarked);
  assert.deepEqual(marks.map(({left, right}) => [left, right]), [[0.25, 0.75]]);
});

test('what concerns the whole window is marked on every line', () => {
  const insight = insightOf({refusals: [{reason: 'few-peers'}], beginNs: at(0), endNs: at(1000)});
  assert.deepEqual(
      heatMarks(grid([4, 5], [0, 1], {}), insight).map(({line, left, right}) => [line, left, right]),
      [[0, 0, 1], [1, 0, 1]]);
});

test('the longest event of the phase shows an execution', () => {
  const event = (type: string, duration: number): {type: string, duration_ns: string} =>
      ({type, duration_ns: String(duration)});
  const events = [event('nrt_execute', 900), event('nc_exec_running', 300), event('nc_exec_running', 500)];
  assert.equal(model.eventOfPhase('device', events), events[2]);
  assert.equal(model.eventOfPhase('post', events), events[0], 'no event of the phase');
  assert.equal(model.eventOfPhase(undefined, []), undefined);
});

test('an answer is whole if every core was judged', () => {
  assert.ok(model.isWhole({cores: 24, coresJudged: 24}));
  assert.ok(!model.isWhole({cores: 24, coresJudged: 23}));
  assert.ok(!model.isWhole({cores: 24, coresJudged: 24, refusals: [{reason: 'losses'}]}));
  assert.ok(!model.isWhole({}));
});
