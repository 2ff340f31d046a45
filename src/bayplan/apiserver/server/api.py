"""The API server: one function from a request to an answer.

Start reading here. `Api.handle` authenticates, finds the route, authorises and dispatches to the parts:
`ObjectReader` for get, list and watch, `ObjectWriter` for writes, `Patcher`, `Subresources`, `Reviews`, and
`Discovery` for everything that describes the server itself. It does no I/O and does not wait; transports (`http`,
`inprocess`) do.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.custom_resources import DEFINITIONS, CustomResources
from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.objects.bodies import read_object, read_options
from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.entries import entry_of
from bayplan.apiserver.objects.patching import Patcher
from bayplan.apiserver.objects.reading import ObjectReader
from bayplan.apiserver.objects.representation import OBJECT, PLAIN, negotiate, render, render_list
from bayplan.apiserver.objects.selection import select
from bayplan.apiserver.objects.subresources import Subresources, subresources_of
from bayplan.apiserver.objects.webhooks import ReviewFailed, ReviewNeeded
from bayplan.apiserver.objects.writing import PLAIN_SUBRESOURCES, Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.protocol.exchange import (
    JSON_TYPE,
    ApiAnswer,
    Request,
    WriteOptions,
    error_answer,
    json_answer,
    text_answer,
)
from bayplan.apiserver.protocol.identity import ADMIN, ANONYMOUS, ApiUser, TokenIssuer, new_admin_token
from bayplan.apiserver.protocol.selectors import BadSelector, parse_field_selector
from bayplan.apiserver.server.authorization import ApiAuthorizer, Attributes, RbacAuthorizer
from bayplan.apiserver.server.discovery import Discovery
from bayplan.apiserver.server.impersonation import impersonated
from bayplan.apiserver.server.reviews import Reviews
from bayplan.apiserver.server.routing import Route, RouteTable, segments_of
from bayplan.apiserver.server.webhook_calls import call_webhook
from bayplan.apiserver.storage.store import Entry, Store
from bayplan.observe.clock import Clock, SystemClock

_log = logging.getLogger("bayplan.apiserver")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/ping", "/healthz/ping"})
_REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")


@dataclass(slots=True)
class ApiSettings:
    """How a server behaves."""

    token: str = field(default_factory=new_admin_token)
    authorization: str = "always-allow"
    """`always-allow` or `rbac`."""
    authentication: bool = True
    """Without it every request is the administrator's; for the in-process transport."""
    history_limit: int = 20_000
    seed: int | None = None
    signing_key: bytes | None = None
    authority: str = ""
    """What clients trust: the certificate of the authority that signed the server's, as PEM."""


class Api:
    """A Kubernetes API server without a transport."""

    def __init__(self, *, clock: Clock | None = None, settings: ApiSettings | None = None) -> None:
        settings = settings or ApiSettings()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.store = Store(history_limit=settings.history_limit)
        self.kinds = Kinds(builtin_kinds())
        self.tokens = TokenIssuer(clock=self.clock, admin_token=settings.token, signing_key=settings.signing_key)
        randomness = random.Random(settings.seed) if settings.seed is not None else random.SystemRandom()
        self.objects = ObjectWriter(store=self.store, kinds=self.kinds, clock=self.clock, randomness=randomness)
        self.reader = ObjectReader(store=self.store, clock=self.clock)
        self.authorizer = ApiAuthorizer() if settings.authorization == "always-allow" else RbacAuthorizer(self.store)
        self.custom_resources = CustomResources(self.store, self.kinds)
        self._patcher = Patcher(self.objects)
        self._subresources = Subresources(self.objects, self.tokens)
        self._reviews = Reviews(self.authorizer, self.tokens)
        self._routes = RouteTable(self.kinds)
        self._discovery = Discovery(self.kinds)

    # ---- the one entry

    async def handle_with_reviews(self, request: Request, needed: ReviewNeeded) -> ApiAnswer:
        """Answer a request that admission webhooks have to look at: call them one by one, and repeat it."""
        answers: dict[str, Json | ReviewFailed] = {}
        while True:
            answers[needed.review.key] = await call_webhook(needed.review)
            try:
                with self.objects.webhooks.answers(answers):
                    return self.handle(request)
            except ReviewNeeded as another:
                needed = another

    def handle(self, request: Request) -> ApiAnswer:
        """Answer a request. Raises nothing but `ReviewNeeded`; then `handle_with_reviews` answers it."""
        warnings: list[str] = []
        try:
            answer = self._dispatch(request, warnings)
        except ReviewNeeded:
            raise
        except RequestRefused as problem:
            answer = error_answer(problem)
        except RecursionError:
            answer = error_answer(errors.bad_request("the object is nested too deep"))
        except Exception:
            _log.exception("unhandled error in %s %s", request.method, request.path)
            answer = error_answer(errors.internal_error("the server met a condition it did not expect; see its log"))
        for warning in warnings:
            quoted = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
            answer.headers.append(("Warning", f'299 - "{quoted}"'))
        return answer

    def _dispatch(self, request: Request, warnings: list[str]) -> ApiAnswer:
        user = self._authenticate(request)
        if user is None:
            if request.path in _OPEN_PATHS:
                user = request.user
            else:
                raise errors.unauthorized()
        request.user = impersonated(user, request.headers, self.authorizer)
        route = self._routes.route(request.path)
        if route is not None:
            return self._resource(route, request, warnings)
        return self._about_the_server(segments_of(request.path), request)

    def _authenticate(self, request: Request) -> ApiUser | None:
        if not self.settings.authentication:
            return ADMIN
        if request.user is not ANONYMOUS:  # a client certificate, which the transport has verified
            return request.user
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        return self.tokens.user(token.strip())

    def _about_the_server(self, parts: list[str], request: Request) -> ApiAnswer:
        if request.method not in ("GET", "HEAD"):
            raise errors.method_not_allowed()
        if request.path in _HEALTH_PATHS:
            return text_answer("ok")
        return self._discovery.answer(parts, request)

    # ---- resources

    def _resource(self, route: Route, request: Request, warnings: list[str]) -> ApiAnswer:
        verb = self._verb(route, request)
        self._authorize(route, verb, request)
        kind = route.kind
        if kind.group in _REVIEW_GROUPS:
            return self._review(route, request)
        if kind.resource == "bindings":
            if verb != "create" or route.name:
                raise errors.method_not_allowed()
            return self._subresources.bind(route.namespace, request)
        if route.subresource:
            return self._subresource(route, verb, request, warnings)
        if verb not in kind.verbs:
            raise errors.method_not_allowed()
        if verb == "get":
            return self.reader.get(kind, route.namespace, route.name, request)
        if verb == "list":
            return self.reader.list(kind, route.namespace, request)
        if verb == "watch":
            return self.reader.watch(kind, route.namespace, route.name, request)
        return self._write(route, verb, request, warnings)

    def _verb(self, route: Route, request: Request) -> str:
        method = request.method
        if method in ("GET", "HEAD"):
            if route.is_watch or (not route.subresource and request.flag("watch")):
                return "watch"
            return "get" if route.name else "list"
        if method not in _VERBS:
            raise errors.method_not_allowed()
        if method == "POST" and route.name and not route.subresource:
            raise errors.method_not_allowed()
        if method in ("PUT", "PATCH") and not route.name:
            raise errors.method_not_allowed()
        if method == "DELETE" and not route.name:
            return "deletecollection"
        return _VERBS[method]

    def _authorize(self, route: Route, verb: str, request: Request) -> None:
        if self.authorizer.allows_everything:
            return
        attributes = Attributes(
            verb=verb,
            group=route.kind.group,
            resource=route.kind.plural,
            subresource=route.subresource,
            namespace=route.namespace,
            name=route.name or _selected_name(verb, request),
        )
        if not self.authorizer.allows(request.user, attributes):
            raise attributes.refusal(request.user)

    def _review(self, route: Route, request: Request) -> ApiAnswer:
        if request.method != "POST" or route.name:
            raise errors.method_not_allowed()
        if negotiate(request.headers.get("accept", "")).form != OBJECT:
            raise errors.not_acceptable((JSON_TYPE,))
        content_type = request.headers.get("content-type", "")
        document = read_object(request.body, content_type, route.kind, validation="Ignore", warnings=[])
        answer = self._reviews.answer(route.kind, route.namespace, document, request.user)
        return self._shown(route.kind, encode(answer), request, 201)

    def _subresource(self, route: Route, verb: str, request: Request, warnings: list[str]) -> ApiAnswer:
        if not route.name or route.subresource not in subresources_of(route.kind):
            raise errors.unknown_path()
        if route.subresource not in PLAIN_SUBRESOURCES:
            return self._subresources.handle(
                route.kind, route.namespace, route.name, route.subresource, request, warnings
            )
        if verb == "get":
            return self.reader.get(route.kind, route.namespace, route.name, request)
        if verb not in ("update", "patch"):
            raise errors.method_not_allowed()
        return self._write(route, verb, request, warnings)

    # ---- writes

    def _write(self, route: Route, verb: str, request: Request, warnings: list[str]) -> ApiAnswer:
        if verb == "create":
            return self._create(route, request, warnings)
        if verb == "update":
            return self._update(route, request, warnings)
        if verb == "patch":
            raw, status = self._patcher.patch(
                route.kind,
                route.namespace,
                route.name,
                request,
                subresource=route.subresource,
                warnings=warnings,
            )
            _warn(route.kind, raw, warnings)
            return self._shown(route.kind, raw, request, status)
        return self._delete(route, request) if verb == "delete" else self._delete_collection(route, request)

    def _create(self, route: Route, request: Request, warnings: list[str]) -> ApiAnswer:
        kind = route.kind
        options = WriteOptions.of(request)
        content_type = request.headers.get("content-type", "")
        document = read_object(request.body, content_type, kind, validation=options.field_validation, warnings=warnings)
        namespace = route.namespace
        if kind.namespaced and not namespace:
            raise errors.method_not_allowed()
        raw = self.objects.create(kind, namespace, document, Caller(request.user, options, warnings=warnings))
        _warn(kind, raw, warnings)
        return self._shown(kind, raw, request, 201)

    def _update(self, route: Route, request: Request, warnings: list[str]) -> ApiAnswer:
        kind = route.kind
        options = WriteOptions.of(request)
        content_type = request.headers.get("content-type", "")
        document = read_object(request.body, content_type, kind, validation=options.field_validation, warnings=warnings)
        caller = Caller(request.user, options, subresource=route.subresource, warnings=warnings)
        exists = self.store.get(kind.stored_as, route.namespace, route.name) is not None
        if not exists and kind.creates_on_update and not route.subresource:
            document["metadata"].setdefault("name", route.name)
            raw = self.objects.create(kind, route.namespace, document, caller)
            return self._shown(kind, raw, request, 201)
        raw = self.objects.update(kind, route.namespace, route.name, lambda _: document, caller)
        _warn(kind, raw, warnings)
        return self._shown(kind, raw, request, 200)

    def _delete_options(self, request: Request) -> DeleteOptions:
        document = read_options(request.body, request.headers.get("content-type", "")) if request.body else {}
        return DeleteOptions.read(document, request.query)

    def _delete(self, route: Route, request: Request) -> ApiAnswer:
        kind = route.kind
        options = self._delete_options(request)
        entry = self.store.get(kind.stored_as, route.namespace, route.name)
        if entry is None:
            raise errors.not_found(kind.plural, route.name, group=kind.group)
        self._judge_deletion(kind, entry, request, options)
        raw, is_gone = delete(self.objects, kind, entry, options)
        if is_gone and not kind.returns_deleted:
            details: Json = {"name": route.name, "kind": kind.plural, "uid": entry.uid}
            if kind.group:
                details["group"] = kind.group
            return json_answer(errors.success(details=details))
        return self._shown(kind, raw, request, 200)

    def _judge_deletion(self, kind: ServedKind, entry: Entry, request: Request, options: DeleteOptions) -> None:
        if self.objects.is_guarded:
            old = self.objects.decoded(entry, kind)
            self.objects.judge_deletion(kind, old, request.user, dry_run=options.dry_run)

    def _delete_collection(self, route: Route, request: Request) -> ApiAnswer:
        kind = route.kind
        options = self._delete_options(request)
        selection = select(
            kind,
            namespace=route.namespace,
            label_selector=request.query.get("labelSelector", ""),
            field_selector=request.query.get("fieldSelector", ""),
        )
        listing = self.store.listing(kind.stored_as)
        chosen = [entry for entry in listing.entries if selection.matches(entry)]
        for entry in chosen:
            self._judge_deletion(kind, entry, request, options)
            delete(self.objects, kind, entry, options)
        metadata = {"resourceVersion": str(self.store.revision)}
        return ApiAnswer(200, render_list(kind, chosen, metadata, PLAIN, now=self.clock.now()))

    def _shown(self, kind: ServedKind, raw: bytes, request: Request, status: int) -> ApiAnswer:
        representation = negotiate(request.headers.get("accept", ""), request.query.get("includeObject", ""))
        if representation is PLAIN and kind.from_storage is None:
            return ApiAnswer(status, raw)
        return ApiAnswer(status, render(kind, raw, representation, now=self.clock.now()), representation.content_type)

    def restore(self, rows: Iterable[tuple[str, str, str, bytes]], *, revision: int) -> None:
        """Fill the empty store from storage, custom resource definitions first so that their objects have a kind."""
        found = sorted(rows, key=lambda row: row[0] != DEFINITIONS)
        definitions = [row for row in found if row[0] == DEFINITIONS]
        self.store.restore((self._restored(row) for row in definitions), revision=revision)
        self.custom_resources.serve_all()
        self.store.restore((self._restored(row) for row in found[len(definitions) :]), revision=revision)

    def _restored(self, row: tuple[str, str, str, bytes]) -> tuple[str, Entry]:
        resource, namespace, name, raw = row
        document = decode_object(raw)
        kind = next((kind for kind in self.kinds if kind.stored_as == resource and kind.to_storage is None), None)
        entry = entry_of(kind, document, raw, int(document["metadata"].get("resourceVersion", 0)))
        if entry.key != (namespace, name):
            raise ValueError(f"what is kept as {resource} `{namespace}/{name}` has another name in its metadata")
        return resource, entry

    def read(self, resource: str, namespace: str, name: str) -> Json | None:
        """A stored object as a document of the caller's own; for the simulated parts and for tests."""
        entry = self.store.get(resource, namespace, name)
        return None if entry is None else decode_object(entry.raw)


def _warn(kind: ServedKind, raw: bytes, warnings: list[str]) -> None:
    if kind.warn is not None:
        warnings += kind.warn(decode_object(raw))


def _selected_name(verb: str, request: Request) -> str:
    """The one name that a list or watch is limited to: rules for that name cover it."""
    if verb not in ("list", "watch", "deletecollection"):
        return ""
    try:
        requirements = parse_field_selector(request.query.get("fieldSelector", ""))
    except BadSelector:  # the reader of the objects refuses it
        return ""
    return next((one.value for one in requirements if one.equal and one.field == "metadata.name"), "")
