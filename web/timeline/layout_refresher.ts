// SPDX-License-Identifier: Apache-2.0

// The clock and timers of the page; tests have their own.
export interface Timers {
  now(): number;  // ms
  set(action: () => void, ms: number): number;
  clear(timer: number): void;
}

export const kPageTimers: Timers = {
  now: () => performance.now(),
  set: (action, ms) => window.setTimeout(action, ms),
  clear: timer => clearTimeout(timer),
};

const kPauseMs = 1000;

// Reads a capture's layout again while the capture runs. At most one read is under way, however often something
// changes meanwhile, and the pause after it is at least as long as it took: an aggregator that is slow is asked less
// often, and never by several reads at once.
export class LayoutRefresher {
  private timer = 0;
  private isReading = false;
  private isWanted = false;
  private closed = false;
  private pauseMs = kPauseMs;

  // `read` never rejects; it reports its own failure.
  constructor(private readonly read: () => Promise<void>, private readonly timers: Timers = kPageTimers) {}

  // Reads after a pause. Calls until then, and while a read is under way, become one further read.
  request(): void {
    if (this.closed) return;
    if (this.isReading)
      this.isWanted = true;
    else if (this.timer === 0)
      this.timer = this.timers.set(() => void this.run(), this.pauseMs);
  }

  close(): void {
    this.closed = true;
    this.timers.clear(this.timer);
  }

  private async run(): Promise<void> {
    this.timer = 0;
    this.isReading = true;
    this.isWanted = false;
    const begin = this.timers.now();
    await this.read();
    this.isReading = false;
    this.pauseMs = Math.max(kPauseMs, this.timers.now() - begin);
    if (this.isWanted) this.request();
  }
}
