// SPDX-License-Identifier: Apache-2.0
import {button, element} from './dom';

export interface CopyLine {
  element: HTMLElement;
  show(text: string, note?: string): void;
}

// A command with a button that copies it.
export function copyLine(text: string, note = '', label = 'Copy'): CopyLine {
  const code = element('code', {tabindex: '0'}), remark = element('span', {class: 'faint'});
  const copy = button(label, () => {
    navigator.clipboard.writeText(code.textContent ?? '')
        .then(() => copy.textContent = 'Copied', () => copy.textContent = 'Select and copy it');
  });
  const line: CopyLine = {
    element: element('div', {class: 'copy-line'}, code, copy, remark),
    show(command: string, hint = ''): void {
      code.textContent = command;
      remark.textContent = hint;
      copy.textContent = label;
    }
  };
  line.show(text, note);
  return line;
}
