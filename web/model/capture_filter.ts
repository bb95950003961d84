// SPDX-License-Identifier: Apache-2.0
// The grammar of the filter above the list of captures: words, and tag:x or tag:"two words" for one whole tag.

const kParts = new RegExp('(?:[^\\s"]|"[^"]*"?)+', 'g');
const kTag = 'tag:';

// What a person typed to find captures. All of its parts have to be met, in either case.
export class CaptureFilter {
  private readonly words: string[] = [];
  private readonly tags: string[] = [];

  constructor(text: string) {
    for (const part of text.toLowerCase().match(kParts) ?? []) {
      const tag = part.startsWith(kTag) ? part.slice(kTag.length).replaceAll('"', '') : '';
      if (tag)
        this.tags.push(tag);
      else
        this.words.push(part.replaceAll('"', ''));
    }
  }

  // Returns whether the text has all the words, and the list all the tags.
  matches(text: string, tags: string[]): boolean {
    const lower = text.toLowerCase(), known = tags.map(tag => tag.toLowerCase().replaceAll('"', ''));
    return this.words.every(word => lower.includes(word)) && this.tags.every(tag => known.includes(tag));
  }
}

// Returns the filter that finds the captures with this tag.
export function tagFilter(tag: string): string {
  const plain = tag.replaceAll('"', '');
  return kTag + (/\s/.test(plain) ? `"${plain}"` : plain);
}
