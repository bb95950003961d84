// SPDX-License-Identifier: Apache-2.0
import {describeError} from '../api/api_error';

import {element, iconButton} from './dom';

const kShownMs = 6000;
const kToastsMax = 4;

// Short messages at the lower edge. Errors stay until they are closed.
export class Toasts {
  private readonly box = element('div', {class: 'toasts', role: 'status', 'aria-live': 'polite'});

  constructor() {
    document.body.appendChild(this.box);
  }

  say(text: string): void {
    const toast = this.add('toast', text, '');
    setTimeout(() => toast.remove(), kShownMs);
  }

  fail(what: string, error: unknown): void {
    const {message, hint} = describeError(error);
    this.add('toast error', `${what}: ${message}`, hint);
  }

  private add(style: string, text: string, hint: string): HTMLElement {
    const toast =
        element('div', {class: style}, element('div', {}, text, hint && element('div', {class: 'notice-hint'}, hint)));
    toast.appendChild(iconButton('close', 'Close message', () => toast.remove()));
    while (this.box.children.length >= kToastsMax) this.box.firstElementChild!.remove();
    this.box.appendChild(toast);
    return toast;
  }
}
