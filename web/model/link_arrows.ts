// SPDX-License-Identifier: Apache-2.0
// Where the arrows between linked events begin and end. All functions are pure; times are relative.

export type Direction = 'upstream'|'downstream'|'peer';

export interface Stretch {
  from: number;
  to: number;
}

// A line; `isOwnHead`: it points at the event itself and not at the other one.
export interface Arrow {
  own: number;    // time of its end at the event
  other: number;  // and at the linked event
  isOwnHead: boolean;
  hasHead: boolean;
}

// An arrow leads from a cause to the begin of its effect. It leaves the cause there if the cause still runs, else at
// its end. Ranks of a collective are compared by when they arrive: the arrow leads from the later, which was waited
// for.
export function arrowBetween(own: Stretch, other: Stretch, direction: Direction, kind: string): Arrow {
  const isOwnHead = direction === 'upstream', hasHead = direction !== 'peer';
  if (kind === 'collective' || !hasHead) return {own: own.from, other: other.from, isOwnHead, hasHead};
  const cause = isOwnHead ? other : own, effect = isOwnHead ? own : other;
  const tail = Math.min(cause.to, Math.max(cause.from, effect.from));
  return {own: isOwnHead ? effect.from : tail, other: isOwnHead ? tail : effect.from, isOwnHead, hasHead};
}

// How far apart two events begin, and in which order: "1.2 ms later".
export function orderOf(from: number, time: number, format: (ns: number) => string): string {
  if (time === from) return 'at the same time';
  return `${format(Math.abs(time - from))} ${time < from ? 'earlier' : 'later'}`;
}
