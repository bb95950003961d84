// SPDX-License-Identifier: Apache-2.0
// The grammar of the search box. The server searches; the page checks what is typed, so that a mistake is shown at
// once.

export interface Term {
  kind: 'word'|'rank'|'type'|'name'|'dur'|'core'|'arg';
  negated: boolean;
  value: string;
}

export interface ParsedQuery {
  terms: Term[];
  problem: string;  // '': none
}

const kParts = new RegExp('(?:[^\\s"]|"[^"]*"?)+', 'g');
const kKeys = ['rank', 'type', 'name', 'core', 'arg'];

export function parseQuery(text: string): ParsedQuery {
  const terms: Term[] = [];
  for (const part of split(text)) {
    const negated = part.length > 1 && part[0] === '-' && part[1] !== '"' ? true : part.startsWith('-"');
    const term = readTerm(negated ? part.slice(1) : part, negated);
    if (typeof term === 'string') return {terms, problem: term};
    terms.push(term);
  }
  return {terms, problem: ''};
}

function readTerm(part: string, negated: boolean): Term|string {
  if (/^dur[<>]/.test(part)) {
    return /^dur[<>]=?\d+(\.\d+)?(ns|us|µs|ms|s|min)$/.test(part)
        ? {kind: 'dur', negated, value: part.slice(3)}
        : `${part}: write a length with its unit, such as dur>10ms or dur<5us`;
  }
  const colon = part.indexOf(':'), key = part.slice(0, colon), value = part.slice(colon + 1);
  if (colon <= 0 || part[0] === '"' || !kKeys.includes(key)) return {kind: 'word', negated, value: unquoted(part)};
  if (!value) return `${part}: a value is missing after the colon`;
  if (key === 'rank' && !/^\d+(-\d+)?$/.test(value)) return `${part}: write rank:13 or rank:8-15`;
  if (key === 'core' && !/^\d+$/.test(value)) return `${part}: write core:5`;
  if (key === 'arg' && !/^[^=]+=/.test(value)) return `${part}: write arg:key=value`;
  return {kind: key as Term['kind'], negated, value: unquoted(value)};
}

// At blanks, but not within double quotes.
function split(text: string): string[] {
  return text.match(kParts) ?? [];
}

function unquoted(text: string): string {
  return text.replaceAll('"', '');
}

// A term that finds exactly this name.
export function nameTerm(name: string): string {
  const plain = name.replaceAll('"', '');
  return 'name:' + (/\s/.test(plain) ? '"' + plain + '"' : plain);
}
