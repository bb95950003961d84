// SPDX-License-Identifier: Apache-2.0
// How long a capture is kept, as the page shows it and as people type it. All functions are pure.
import {formatDuration, formatUtc, parseDuration} from './text_format';

export interface Retention {
  isContinuous: boolean;
  isLive: boolean;
  retentionNs: bigint;  // 0: no limit
  stoppedNs: bigint;    // 0: not yet
}

export function retentionText({isContinuous, isLive, retentionNs, stoppedNs}: Retention): string {
  const length = formatDuration(Number(retentionNs));
  if (isContinuous && isLive)
    return retentionNs ? `events of the last ${length}` : 'until the space chosen at its start is full';
  if (isContinuous || retentionNs === 0n) return 'until somebody deletes it';
  return stoppedNs ? `for ${length} after its end, until about ${formatUtc(stoppedNs + retentionNs)} UTC`
                   : `for ${length} after its end`;
}

// A continuous capture that has ended keeps what it has; the aggregator refuses a change.
export function mayChangeRetention({isContinuous, isLive}: Retention): boolean {
  return !isContinuous || isLive;
}

// What the dialog begins with.
export function retentionInput(retentionNs: bigint): string {
  return retentionNs === 0n ? 'forever' : formatDuration(Number(retentionNs));
}

// "30d", "12 h" or "forever" as the API's nanoseconds; a sentence about what is wrong instead.
export function parseRetention(text: string): {ns: string}|{problem: string} {
  if (text.trim().toLowerCase() === 'forever') return {ns: '0'};
  const ns = parseDuration(text);
  if (ns === null) return {problem: 'Write a time such as 30d or 12h, or forever.'};
  // Beyond, a number of nanoseconds is no 64-bit integer.
  if (ns < 1 || ns > 1.8e19) return {problem: 'Write a time from 1 ns to 500 years, or forever.'};
  return {ns: BigInt(ns).toString()};
}
