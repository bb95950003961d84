// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {CaptureLayout} from '../model/capture_layout';
import {buildSpans} from '../model/frame_builder';
import {NameTable} from '../model/name_table';
import {TileStore} from '../model/tile_store';
import {TimeBase} from '../model/time_base';
import {formatViewState, parseViewState} from '../model/view_state';

import {BlockLoader, LoaderHost} from './block_loader';
import {LayoutRefresher, Timers} from './layout_refresher';
import {TimelineState} from './timeline_state';

// Time that moves only when a test says so.
class FakeTimers implements Timers {
  private time = 1000;
  private next = 1;
  private readonly waiting = new Map<number, {at: number, action: () => void}>();

  now(): number {
    return this.time;
  }

  set(action: () => void, ms: number): number {
    this.waiting.set(this.next, {at: this.time + ms, action});
    return this.next++;
  }

  clear(timer: number): void {
    this.waiting.delete(timer);
  }

  // Runs what is due within this time, and the promises that follow from it.
  async advance(ms: number): Promise<void> {
    const until = this.time + ms;
    for (;;) {
      await settle();
      const due = [...this.waiting].filter(([, {at}]) => at <= until).sort(([, a], [, b]) => a.at - b.at)[0];
      if (!due) break;
      this.waiting.delete(due[0]);
      this.time = Math.max(this.time, due[1].at);
      due[1].action();
    }
    this.time = until;
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; ++i) await Promise.resolve();
}

const kBase = new TimeBase('1000');

function layoutUntil(end: number, version: string): CaptureLayout {
  return new CaptureLayout(
      {
        capture: {id: 'c'},
        live: true,
        version,
        begin_ns: '1000',
        end_ns: String(1000 + end),
        streams: [{number: 4, begin_ns: '1000', end_ns: '1000'}]
      },
      kBase);
}

// An aggregator whose answers take a while, and cover `covers` of the window.
class SlowApi {
  asked = 0;
  answered = 0;
  cancelled = 0;

  constructor(private readonly timers: Timers, private readonly ms: number, private readonly covers = 1) {}

  spans(_id: string, query: Record<string, string|number>, signal: AbortSignal): Promise<ArrayBuffer> {
    ++this.asked;
    const from = Number(query.from), to = from + (Number(query.to) - from) * this.covers;
    return new Promise((resolve, reject) => {
      const timer = this.timers.set(() => {
        ++this.answered;
        resolve(buildSpans(
            {from: String(from), to: String(Math.round(to))},
            [{fields: {mode: 'bins'}, items: [{start: 0, duration: 1}]}]));
      }, this.ms);
      signal.addEventListener('abort', () => {
        ++this.cancelled;
        this.timers.clear(timer);
        reject(new DOMException('cancelled', 'AbortError'));
      });
    });
  }
}

function makeLoader(timers: FakeTimers, api: SlowApi): {host: LoaderHost, loader: BlockLoader, tiles: () => number} {
  let tiles = 0;
  const host: LoaderHost = {
    state: {
      base: kBase,
      captureId: 'c',
      layout: layoutUntil(1e9, '1'),
      names: new NameTable(),
      store: new TileStore(1 << 20)
    },
    api
  };
  const loader = new BlockLoader(host, {tileArrived: () => ++tiles, loadingChanged: () => {}}, timers);
  return {host, loader, tiles: () => tiles};
}

test('a capture that grows faster than its answers arrive is drawn all the same', async () => {
  const timers = new FakeTimers(), api = new SlowApi(timers, 3000), {host, loader, tiles} = makeLoader(timers, api);
  // Each second the layout grows and has a new version, and the view follows it.
  for (let second = 1; second <= 30; ++second) {
    const end = 1e9 + second * 1e9;
    host.state.layout = layoutUntil(end, String(second));
    loader.want([0], end - 9.5e9, end + 0.5e9, 1000);
    await timers.advance(1000);
  }
  assert.ok(tiles() >= 8, `${tiles()} answers drawn in 30 s`);
  assert.equal(api.cancelled, 0);
  assert.ok(api.asked <= tiles() + 1, `${api.asked} questions`);
});

test('an answer that covers less than it was asked for is not asked for again at once', async () => {
  const timers = new FakeTimers(), api = new SlowApi(timers, 5, 0.5), {loader} = makeLoader(timers, api);
  for (let frame = 0; frame < 600; ++frame) {  // 10 s of frames
    loader.want([0], 0, 1e9, 1000);
    await timers.advance(16);
  }
  assert.ok(api.asked <= 6, `${api.asked} questions in 10 s`);
  assert.ok(api.asked >= 2, 'and is not forgotten either');
});

test('what is not drawn any more is cancelled', async () => {
  const timers = new FakeTimers(), api = new SlowApi(timers, 1000), {loader, tiles} = makeLoader(timers, api);
  loader.want([0], 0, 1e8, 1000);
  await timers.advance(100);
  loader.want([0], 8e8, 9e8, 1000);
  await timers.advance(100);
  assert.equal(api.cancelled, 1);
  await timers.advance(2000);
  assert.equal(tiles(), 1);
  assert.equal(api.asked, 2);
  loader.close();
});

test('one layout is read at a time, and a slow aggregator is asked less often', async () => {
  const timers = new FakeTimers();
  let underWay = 0, most = 0, reads = 0;
  const refresher = new LayoutRefresher(
      () => new Promise<void>(resolve => {
        ++reads;
        most = Math.max(most, ++underWay);
        timers.set(() => {
          --underWay;
          resolve();
        }, 5000);
      }),
      timers);
  for (let i = 0; i < 300; ++i) {  // ten changes a second for 30 s
    refresher.request();
    await timers.advance(100);
  }
  assert.equal(most, 1);
  assert.ok(reads >= 2 && reads <= 4, `${reads} reads of 5 s each in 30 s`);
  refresher.close();
  await timers.advance(20000);
  assert.equal(underWay, 0);
});

test('a request while a layout is read is not lost', async () => {
  const timers = new FakeTimers();
  let reads = 0;
  const refresher = new LayoutRefresher(async () => {
    if (++reads === 1) refresher.request();
  }, timers);
  refresher.request();
  await timers.advance(5000);
  assert.equal(reads, 2);
});

test('a capture without events has no window in its address, and shows the whole with the first event', () => {
  const json = {capture: {id: 'c'}, live: true, version: '1', begin_ns: '0', end_ns: '0', streams: []};
  const state = new TimelineState('c', json);
  state.restore(parseViewState('from=5&to=9&tool=2'), false);
  assert.equal(formatViewState(state.toView(0)), 'tool=2');
  state.updateLayout({...json, version: '2', begin_ns: '1795807991714858703', end_ns: '1795807992714858703'});
  assert.equal(state.layout.begin, 0);
  assert.equal(state.layout.end, 1e9);
  assert.ok(state.viewport.from <= 0 && state.viewport.to >= 1e9, `${state.viewport.from} to ${state.viewport.to}`);
  const view = parseViewState(formatViewState(state.toView(0)));
  assert.ok(BigInt(view.from) <= 1795807991714858703n && BigInt(view.to) >= 1795807992714858703n);
  state.updateLayout({...json, begin_ns: '1795807991714858000', end_ns: '1795807993714858703'});
  assert.equal(state.layout.begin, -703, 'the origin of time stays');
});
