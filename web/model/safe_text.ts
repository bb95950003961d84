// SPDX-License-Identifier: Apache-2.0
// Names come from traced programs and are hostile. The page sets them by textContent or fillText, which cannot run
// markup; what is left are characters that hide or reorder text, and sheer length.

// Controls, and characters that are invisible or change the direction of the text around them (CleanText of the
// programs escapes the same).
const kControls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const kLengthMax = 4096;

function escaped(character: string): string {
  const digits = character.codePointAt(0)!.toString(16).padStart(4, '0');
  return digits.length > 4 ? `\\u{${digits}}` : `\\u${digits}`;
}

// Returns the text with each control character made visible as "\u202e" and cut after lengthMax characters.
export function safeText(text: unknown, lengthMax = kLengthMax): string {
  let shown = typeof text === 'string' ? text : text === null || text === undefined ? '' : String(text);
  const isLong = shown.length > lengthMax;
  if (isLong) shown = shown.slice(0, lengthMax);
  shown = shown.replace(kControls, c => c === '\n' || c === '\t' ? ' ' : escaped(c));
  return isLong ? shown + '…' : shown;
}

// One field of a CSV file (RFC 4180). A leading =, +, - or @ would be a formula in a spreadsheet; numbers stay numbers.
export function csvField(value: string|number): string {
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : '';
  let text = value;
  if (/^[=+\-@\t\r]/.test(text) && !/^-?\d+(\.\d+)?$/.test(text)) text = '\'' + text;
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

export function csvText(rows: (string|number)[][]): string {
  return rows.map(row => row.map(csvField).join(',')).join('\r\n') + '\r\n';
}

// The parts as sentences: messages of the API begin with a small letter and end without a full stop.
export function sentences(...parts: string[]): string {
  return parts.filter(part => part)
      .map(part => part[0].toUpperCase() + part.slice(1) + (/[.!?…]$/.test(part) ? '' : '.'))
      .join(' ');
}

// A name for a downloaded file, without anything that a file system or shell could take for more than a name.
export function fileName(text: string, suffix: string): string {
  const base = text.replace(/[^A-Za-z0-9._-]+/g, '_').replace(/^[._-]+/, '').slice(0, 80);
  return (base || 'capture') + suffix;
}
