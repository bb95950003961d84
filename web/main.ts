// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from './api/api_client';
import {ApiError, describeError} from './api/api_error';
import {Session} from './api/api_types';
import {CapturePage} from './manager/capture_page';
import {ManagerPage} from './manager/manager_page';
import {safeText} from './model/safe_text';
import {setWorkerScript} from './timeline/painter';
import {startSceneWorker} from './timeline/scene_canvas';
import {timelineLoading, TimelinePage} from './timeline/timeline_page';
import {TimelineState} from './timeline/timeline_state';
import {button, element, notice, replaceChildren} from './widgets/dom';
import {Navigation, Page} from './widgets/navigation';
import {Theme} from './widgets/theme';
import {Toasts} from './widgets/toasts';

// Shows the page that the address names: the manager, a capture's timeline, or what is known about it.
class App implements Navigation {
  private readonly api = new ApiClient();
  private readonly theme = new Theme();
  private readonly toasts = new Toasts();
  private readonly root = document.getElementById('root')!;
  private page: Page|null = null;
  private session: Session|null = null;
  private shownPath = '';

  start(): void {
    addEventListener('popstate', () => {
      if (location.pathname !== this.shownPath) void this.show();
    });
    void this.show();
  }

  go(path: string): void {
    history.pushState(null, '', path);
    void this.show();
  }

  private async show(): Promise<void> {
    const path = this.shownPath = location.pathname,
          match = /^\/capture\/([^/]+)(\/about|\/certificate)?\/?$/.exec(path);
    this.page?.close();
    this.page = null;
    replaceChildren(this.root, match ? timelineLoading(decode(match[1])) : notice('loading', 'Loading'));
    try {
      this.session ??= await this.api.session();
      const page = match ? await this.capturePage(decode(match[1]), match[2] !== undefined)
                         : new ManagerPage(this.api, this.toasts, this, this.theme, this.session);
      if (this.shownPath !== path) return page.close();
      this.page = page;
      document.title = match ? `${safeText(decode(match[1]), 100)} · neurontrace` : 'neurontrace';
      replaceChildren(this.root, page.element);
    } catch (error) {
      this.fail(error);
    }
  }

  private async capturePage(id: string, isAbout: boolean): Promise<Page> {
    if (isAbout) return new CapturePage(this.api, this, this.theme, id);
    const state = new TimelineState(id, await this.api.layout(id));
    return new TimelinePage(this.api, this.toasts, this, this.theme, state);
  }

  private fail(error: unknown): void {
    if (error instanceof ApiError && error.status === 401) return this.askToken(error);
    const {message, hint} = describeError(error);
    replaceChildren(
        this.root,
        notice(
            'error', message, hint, button('Try again', () => void this.show()),
            button('All captures', () => this.go('/'))));
  }

  private askToken(error: ApiError): void {
    const input = element('input', {type: 'password', id: 'token', autocomplete: 'current-password', required: true});
    const problem = element('p', {class: 'bad', role: 'alert'});
    const text = `A token is needed: ${error.message}.`;
    const form = element('form', {class: 'sign-in'}, element('h1', {}, 'neurontrace'), element('p', {}, text),
                         element('label', {class: 'field', for: 'token'}, element('span', {}, 'Token'), input), problem,
                         element('button', {type: 'submit', class: 'primary'}, 'Sign in'),
                         error.hint && element('p', {class: 'faint'}, error.hint));
      form.addEventListener('submit', event => {
        event.preventDefault();
        this.api.signIn(input.value).then(() => this.show(), reason => {
          // A server without this call takes the token from the address, and answers with a cookie.
          const hasCall = !(reason instanceof ApiError) || ![404, 405, 501].includes(reason.status);
          if (hasCall)
            problem.textContent = describeError(reason).message;
          else
            location.assign(`${location.pathname}?token=${encodeURIComponent(input.value)}`);
        });
      });
      replaceChildren(this.root, form);
      input.focus();
  }
  }

  function decode(text: string): string {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  // The worker that draws loads this script too, and has no document.
  if(typeof document === 'undefined') {
    startSceneWorker();
  }
  else {
    setWorkerScript((document.currentScript as HTMLScriptElement | null)?.src ?? '');
    new App().start();
  }
