// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {certificateSentences} from './certificate_sentences';
import {artifactCommand, exportCommand, shellWord} from './command_text';
import {highest, hostSeries, stepPath} from './host_series';
import {TileRow} from './span_tile';

function counter(stream: number, name: string, start: number[], value: number[]): TileRow {
  return {
    stream,
    row: 1,
    name,
    source: 'counter',
    order: 0,
    depth: 1,
    exact: true,
    events: start.length,
    isCounter: true,
    unit: '',
    max: Math.max(...value),
    start: Uint32Array.from(start),
    duration: new Uint32Array(0),
    count: new Uint32Array(0),
    nameOf: new Uint16Array(0),
    depthOf: new Uint8Array(0),
    flags: new Uint8Array(0),
    value: Float32Array.from(value),
    longest: 0
  };
}

test('counters of hosts become one chart of processors and one of memory for each', () => {
  const hosts = hostSeries([
    counter(9, 'host_cpu average util_percent', [0, 100], [30, 50]),
    counter(9, 'host_cpu 0 util_percent', [0, 100], [10, 90]),
    counter(9, 'host_cpu 1 util_percent', [0, 100], [50, 10]),
    counter(9, 'host_memory used_percent', [0, 100], [20, 25]),
    counter(9, 'host_memory used_bytes', [0, 100], [2e9, 2.5e9]),
    counter(9, 'host_memory total_bytes', [0, 100], [1e10, 1e10]),
    counter(7, 'hbm something', [0], [1]),
    counter(5, 'host_cpu average util_percent', [0, 1], [-3, NaN]),
  ]);
  assert.deepEqual(hosts.map(host => host.stream), [9, 5]);
  assert.equal(hosts[0].processors, 2);
  assert.deepEqual(hosts[0].cpu, {at: [0, 100], value: [30, 50]});
  assert.deepEqual(hosts[0].busiest, {at: [0, 100], value: [50, 90]});
  assert.equal(highest(hosts[0].memory), 25);
  assert.equal(hosts[0].usedBytes, 2.5e9);
  assert.equal(hosts[0].totalBytes, 1e10);
  assert.deepEqual(hosts[1].cpu.value, [0, 0], 'a share is from 0 to 100');
});

test('a chart holds each sample until the next', () => {
  assert.equal(stepPath({at: [0, 50], value: [100, 25]}, 100, 200, 40), 'M0.0 0.0H100.0V30.0H200.0');
  assert.equal(stepPath({at: [], value: []}, 100, 200, 40), '');
});

const kWorker = {
  worker: {instanceId: 'i-a', pid: 7},
  part: 'WORKER_PART_RECORDED',
  workerGids: ['0', '1'],
  clock: {aligned: true, boundNs: '1200'}
};

test('a complete capture is described in sentences', () => {
  assert.deepEqual(
      certificateSentences({
        complete: true,
        account: {expected: '5120', stored: '5120'},
        workers: [kWorker],
        hosts: [{account: {stored: '3'}}],
        jobs: [{job: 'train', worldSize: '2', ranksSeen: '2'}]
      }),
      [
        'Every event that the runtime produced is stored: 5,120 events of 1 worker with 2 ranks.',
        'Every worker took part.',
        'All clocks are aligned; no time is more than 1.2 µs off.',
        'Processors and memory of 1 host were sampled 3 times.',
        'Job train: 2 of 2 ranks were seen.',
      ]);
});

test('what a capture lacks is named, and the rest is counted', () => {
  const never = {
    worker: {instanceId: 'i-b', pid: 8},
    part: 'WORKER_PART_NEVER',
    absence: 'WORKER_ABSENCE_NO_RUNTIME',
    detail: 'closed'
  };
  const sentences = certificateSentences({
    account: {
      expected: '10',
      stored: '7',
      lost: '3',
      lostUnknown: true,
      losses: [
        {place: 'LOSS_PLACE_RUNTIME_RING', reason: 'LOSS_REASON_OVERWRITTEN', events: '3', detail: 'too slow'},
        {place: 'LOSS_PLACE_STORE', reason: 'LOSS_REASON_UNKNOWN', eventsUnknown: true}
      ]
    },
    workers: [{...kWorker, gaps: '2', gapsSumNs: '5000000'}, ...Array(6).fill(never)]
  });
  assert.equal(
      sentences[0],
      'Of 10 expected events of 7 workers with 2 ranks, 7 are stored and 3 and an unknown ' +
          'number more are lost.');
  assert.equal(
      sentences[1],
      'Lost: 3 events at runtime ring, overwritten: too slow; an unknown number of events at ' +
          'store, unknown.');
  assert.match(
      sentences[2],
      /^6 of 7 workers did not record to the end: i-b pid 8, never, no runtime, closed; .*; and 1 more\.$/);
  assert.match(sentences[3], /^The clocks of 6 of 7 workers are not aligned/);
  assert.match(sentences[4], /^1 worker has gaps, of together at most 5 ms on a core/);
  assert.match(certificateSentences({provisional: true})[0], /^The capture is not over: so far 0 events/);
});

test('words of a shell are quoted', () => {
  assert.equal(shellWord('i-0a_pid_7/x.ntff'), 'i-0a_pid_7/x.ntff');
  assert.equal(shellWord('$(rm -rf /) it\'s'), '\'$(rm -rf /) it\'\\\'\'s\'');
  assert.equal(shellWord(''), '\'\'');
});

test('the command of an export makes the same file', () => {
  const whole = {captureId: '01JD', format: 'parquet', fromNs: '', toNs: '', gids: '', streams: ''};
  assert.equal(exportCommand(whole), 'neurontrace export 01JD --format parquet -o capture.parquet');
  assert.equal(
      exportCommand({...whole, format: 'perfetto', fromNs: '5', toNs: '9', gids: '8-15,20'}),
      'neurontrace export 01JD --format perfetto --from 5 --to 9 --worker-gid 8-15,20 -o capture.pftrace');
});

test('device profiles are opened with their model', () => {
  const profile = {path: 'i-a_pid_7/395_instid_0_vnc_0.ntff', kind: 'ntff'},
        model = {path: 'i-a_pid_7/neff_395.neff', kind: 'neff'}, other = {path: 'neffs/abc.neff', kind: 'neff'};
  assert.equal(
      artifactCommand(profile, [profile, other, model]).command,
      'neuron-explorer view -n neff_395.neff -s 395_instid_0_vnc_0.ntff');
  assert.equal(
      artifactCommand(model, [profile, model]).command,
      'neuron-explorer view -n neff_395.neff -s 395_instid_0_vnc_0.ntff');
  const old = {path: 'i-a_pid_7/profile_nc_1_session_4.ntff', kind: 'ntff'};
  assert.equal(
      artifactCommand(old, [old, model]).command, 'neuron-explorer view -n MODEL.neff -s profile_nc_1_session_4.ntff');
  assert.match(artifactCommand(old, [old]).note, /has no model/);
  assert.equal(artifactCommand(other, [other]).command, 'neuron-explorer view -n abc.neff -s PROFILE.ntff');
  assert.deepEqual(artifactCommand({path: 'i-a_pid_7/1750000000000000000/ntrace.pb', kind: 'ntrace'}, []), {
    command: 'neuron-explorer view -d i-a_pid_7',
    note: 'Download the files of i-a_pid_7/1750000000000000000 into a directory of this name first.'
  });
});
