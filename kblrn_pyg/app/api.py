"""The JSON interface and the page, as a FastAPI application."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from kblrn_pyg import __version__
from kblrn_pyg.app import schema
from kblrn_pyg.app.asking import Asking
from kblrn_pyg.app.catalogue import UnknownNameError
from kblrn_pyg.app.engine import Engine
from kblrn_pyg.app.engine import Query as Asked
from kblrn_pyg.app.guard import Guard
from kblrn_pyg.nn import KBLRN

LOCAL = ("localhost", "127.0.0.1", "::1")
# How many requests are answered at once.
_NUM_THREADS = 4
_STATIC = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PAGES = {"/": "index.html", "/docs": "docs.html", "/favicon.ico": "icon.svg"}

Name = Annotated[str, Query(min_length=1, max_length=2000)]
Letters = Annotated[str, Query(max_length=200, description="what the name contains")]
Side = Annotated[schema.Side, Query(description="the side that is asked for")]
Novel = Annotated[bool, Query(description="whether known answers are left out")]
Experts = Annotated[
    str | None,
    Query(max_length=500, description="which experts to ask, with commas between them"),
]
K = Annotated[int, Query(ge=1, le=200, description="the number of answers at most")]
FewK = Annotated[int, Query(ge=1, le=20, description="the number of answers at most")]
Limit = Annotated[int, Query(ge=1, le=100, description="the number at most")]

_REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Problem} for status in (404, 422)
}


def create_app(
    model: KBLRN, title: str = "KBLRN", hosts: Iterable[str] = LOCAL
) -> FastAPI:
    r"""Creates an application that answers queries about one model.

    Args:
        model (KBLRN): The model, with its knowledge base.
        title (str, optional): The title of the page. (default: :obj:`"KBLRN"`)
        hosts (iterable, optional): The host names that requests may use.
            (default: those of this machine)
    """
    asking = Asking(Engine(model), title)
    app = FastAPI(
        title="KBLRN",
        description="Ask a trained model of a knowledge base, and ask why.",
        version=__version__,
        docs_url=None,  # which would load scripts from elsewhere
        redoc_url=None,
        lifespan=_few_threads,
    )
    app.state.asking = asking
    _add_questions(app, asking)
    _add_pages(app)
    _add_refusals(app)
    app.add_middleware(Guard, hosts=tuple(hosts))
    return app


@asynccontextmanager
async def _few_threads(_: FastAPI) -> AsyncIterator[None]:
    """Lets requests wait in line instead of taking the processor from each other."""
    current_default_thread_limiter().total_tokens = _NUM_THREADS
    yield


def _add_questions(app: FastAPI, asking: Asking) -> None:
    def asked(entity: Name, relation: Name, side: Side = "tail") -> Asked:
        return asking.query(entity, relation, side)

    def chosen(experts: Experts = None) -> list[str] | None:
        return None if experts is None else experts.split(",")

    question, choice = Depends(asked), Depends(chosen)

    @app.get("/api/model")
    def model() -> schema.ModelInfo:
        """Says which model answers, and gives examples of questions."""
        return asking.model()

    @app.get("/api/entities")
    def entities(q: Letters = "", limit: Limit = 10) -> list[schema.Entity]:
        """Completes the name of an entity."""
        return asking.entities(q, limit)

    @app.get("/api/relations")
    def relations(q: Letters = "", limit: Limit = 50) -> list[schema.Thing]:
        """Completes the name of a relation."""
        return asking.relations(q, limit)

    @app.get("/api/entity", responses=_REFUSED)
    def entity(entity: Name) -> schema.EntityPage:
        """Returns what is known of an entity, and the relations that make sense."""
        return asking.entity(entity)

    @app.get("/api/answers", responses=_REFUSED)
    def answers(
        query: Asked = question,
        k: K = 10,
        novel: Novel = False,
        experts: list[str] | None = choice,
    ) -> schema.AnswerList:
        """Returns the best answers to a question."""
        return asking.answers(query, k, novel, experts)

    @app.get("/api/answers.csv", responses=_REFUSED, response_class=Response)
    def table(
        query: Asked = question,
        k: K = 10,
        novel: Novel = False,
        experts: list[str] | None = choice,
    ) -> Response:
        """Returns the best answers to a question as a table."""
        text = asking.csv(query, k, novel, experts)
        return Response(text, media_type="text/csv; charset=utf-8")

    @app.get("/api/alone", responses=_REFUSED)
    def alone(
        query: Asked = question, k: FewK = 3, novel: Novel = False
    ) -> list[schema.Alone]:
        """Returns what each expert would answer alone."""
        return asking.alone(query, k, novel)

    @app.get("/api/explanation", responses=_REFUSED)
    def explanation(
        answer: Name,
        query: Asked = question,
        experts: list[str] | None = choice,
    ) -> schema.Explanation:
        """Returns why an answer scores as it does."""
        return asking.explanation(query, answer, experts)


def _add_pages(app: FastAPI) -> None:
    """Serves the files of the page, which are read here: no request can name a
    path."""
    files = {
        path.name: (path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(_STATIC.iterdir())
        if path.suffix in _TYPES
    }

    def page(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, "there is no such page")
        content, kind = files[name]
        return Response(content, media_type=kind)

    def of(name: str) -> Any:
        return lambda: page(name)

    for path, name in _PAGES.items():
        app.get(path, include_in_schema=False, response_class=Response)(of(name))

    @app.get("/static/{name}", include_in_schema=False, response_class=Response)
    def static(name: str) -> Response:
        return page(name)


def _add_refusals(app: FastAPI) -> None:
    def problem(status: int, detail: str, nearest: Any = ()) -> JSONResponse:
        found = schema.Problem(detail=detail, nearest=list(nearest))
        return JSONResponse(found.model_dump(), status)

    @app.exception_handler(UnknownNameError)
    def unknown(_: Request, error: UnknownNameError) -> JSONResponse:
        return problem(404, str(error), error.nearest)

    @app.exception_handler(ValueError)
    def wrong(_: Request, error: ValueError) -> JSONResponse:
        return problem(422, str(error))

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        # Without what was sent: it may be long.
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"][1:]))
        return problem(422, f"{where}: {first['msg']}"[:500])

    @app.exception_handler(404)
    def missing(_: Request, error: HTTPException) -> JSONResponse:
        return problem(404, "there is no such page")
