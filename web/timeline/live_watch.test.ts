// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict';
import test from 'node:test';

import {LiveWatch} from './live_watch';

// What a browser's EventSource does, with the test as its server.
class FakeSource {
  readonly CLOSED = 2;
  readyState = 0;
  onopen = (): void => undefined;
  onerror = (): void => undefined;
  onmessage = (_: {data: string}): void => undefined;

  close(): void {
    this.readyState = 2;
  }
  open(): void {
    this.readyState = 1;
    this.onopen();
  }
  // A refusal ends it, a connection that broke does not.
  fail(isRefused: boolean): void {
    this.readyState = isRefused ? 2 : 0;
    this.onerror();
  }
}

class Follower {
  readonly sources: FakeSource[] = [];
  readonly said: string[] = [];
  readonly waiting: (() => void)[] = [];
  readonly watch = new LiveWatch(
      {
        watch: () => {
          this.sources.push(new FakeSource());
          return this.sources[this.sources.length - 1] as unknown as EventSource;
        }
      },
      'c', {
        captureChanged: update => this.said.push(`${update.state} ${update.events} ${update.endNs}`),
        watchRefused: () => this.said.push('refused'),
        watchOpened: () => this.said.push('opened')
      },
      {
        now: () => 0,
        set: action => this.waiting.push(action),
        clear:
            timer => {
              if (timer) this.waiting.splice(timer - 1, 1);
            }
      });

  get source(): FakeSource {
    return this.sources[this.sources.length - 1];
  }
}

test('changes are told, and what is no JSON is not', () => {
  const follower = new Follower();
  follower.source.open();
  follower.source.onmessage(
      {data: '{"state": "CAPTURE_STATE_RECORDING", "events": "17", "end_ns": "1750000000000000000"}'});
  follower.source.onmessage({data: '{"state":'});
  assert.deepEqual(follower.said, ['opened', 'CAPTURE_STATE_RECORDING 17 1750000000000000000']);
});

test('the browser itself repairs a connection that broke', () => {
  const follower = new Follower();
  follower.source.open();
  follower.source.fail(false);
  assert.equal(follower.waiting.length, 0);
  assert.deepEqual(follower.said, ['opened']);
});

test('after a refusal the watch connects again, as often as it takes', () => {
  const follower = new Follower();
  for (let i = 0; i < 3; ++i) {
    follower.source.fail(true);
    assert.equal(follower.sources.length, i + 1, 'not at once');
    follower.waiting[i]();
  }
  follower.source.open();
  assert.deepEqual(follower.said, ['refused', 'refused', 'refused', 'opened']);
  assert.equal(follower.sources.length, 4);
});

test('a closed watch stays closed', () => {
  const follower = new Follower();
  follower.source.fail(true);
  follower.watch.close();
  assert.equal(follower.waiting.length, 0);
  assert.equal(follower.source.readyState, 2);
});
