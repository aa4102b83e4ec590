"""`tavola iac`: a design as infrastructure, for the tool that a team has."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from tavola.cli.designs import load_design
from tavola.cli.failures import reporting_errors
from tavola.cli.files import FileRefused, deliver
from tavola.cli.output import note, say, say_json
from tavola.cli.parameters import Argument, Group, Option

app = Group(
    "iac",
    help="The infrastructure of a design: tables, stream consumers, alarms, policies, for Terraform, CloudFormation or the CDK.",
    no_args_is_help=True,
)

Target: TypeAlias = Annotated[
    str,
    Argument(
        metavar="TARGET",
        help="A module that declares a design, as shop.model or shop.model:Shop, or a file of one.",
    ),
]
Out: TypeAlias = Annotated[
    Path | None,
    Option("--out", metavar="DIR|FILE", help="Write there, and not to standard output.", show_default=False),
]
Force: TypeAlias = Annotated[
    bool,
    Option(
        "--force",
        help="Write over files that are not Tavola's or were changed since, and without what they have and this has not.",
    ),
]
NoAlarms: TypeAlias = Annotated[bool, Option("--no-alarms", help="Leave the alarms out.")]
NoPolicies: TypeAlias = Annotated[
    bool, Option("--no-policies", help="Leave the policies of readers and writers out.")
]
Endpoint: TypeAlias = Annotated[
    bool, Option("--vpc-endpoint", help="Add a gateway endpoint, with a policy, for a private network.")
]
Key: TypeAlias = Annotated[
    str | None,
    Option(
        "--kms-key",
        metavar="new|KEY",
        help="What encrypts tables that name no key: a new key, or one by its ARN, alias or id.",
    ),
]
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]+")
_BODY_BYTES_MAX = 51_200  # of a template that is not in a bucket
_ACCOUNT = re.compile(r"[0-9]{12}")

AsJson: TypeAlias = Annotated[
    bool, Option("--json", help="Print the files, or what became of them, as JSON.")
]


@app.add
def terraform(
    target: Target,
    out: Out = None,
    force: Force = False,
    no_alarms: NoAlarms = False,
    no_policies: NoPolicies = False,
    vpc_endpoint: Endpoint = False,
    kms_key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write Terraform for the AWS provider: a folder of .tf files, or one file if --out ends in .tf."""
    with reporting_errors(f"Cannot write Terraform of {target}."):
        from tavola.iac import index_steps, read_contents, render_terraform, terraform_files

        plan = _plan(target, no_alarms, no_policies, vpc_endpoint, kms_key)
        for step in index_steps(plan, None if out is None else read_contents(out)):
            note(f"{step}.")
        if out is None or out.suffix == ".tf":
            _give_one("main.tf", render_terraform(plan), out, force, as_json)
        else:
            _give(terraform_files(plan), out, force, as_json)


@app.add
def cloudformation(
    target: Target,
    out: Out = None,
    form: Annotated[
        Literal["yaml", "json"] | None,
        Option("--format", help="YAML or JSON; without it what --out ends in says so, or else YAML."),
    ] = None,
    force: Force = False,
    no_alarms: NoAlarms = False,
    no_policies: NoPolicies = False,
    vpc_endpoint: Endpoint = False,
    kms_key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write a CloudFormation template, as a file or as template.yaml in a folder."""
    with reporting_errors(f"Cannot write CloudFormation of {target}."):
        from tavola.iac import render_template

        is_file = out is not None and out.suffix in (".yaml", ".yml", ".json", ".template")
        chosen = form or ("json" if out is not None and out.suffix == ".json" else "yaml")
        plan = _plan(target, no_alarms, no_policies, vpc_endpoint, kms_key)
        if out is not None and not is_file and out.suffix and not out.is_dir():
            raise FileRefused(
                str(out),
                "it ends as no template does; .yaml, .yml, .json and .template do, or name a folder",
                "--out",
            )
        name = f"template.{chosen}"
        where = out if out is None or is_file else _make_folder(out) / name
        text = render_template(plan, chosen)
        _give_one(name, text, where, force, as_json)
        if where is not None and len(text.encode()) > _BODY_BYTES_MAX:
            note(
                f"It has {len(text.encode()):,} bytes, and CloudFormation takes {_BODY_BYTES_MAX:,} at once: deploy it from a bucket, with "
                "aws cloudformation deploy --s3-bucket."
            )


@app.add
def cdk(
    target: Target,
    out: Out = None,
    force: Force = False,
    no_alarms: NoAlarms = False,
    no_policies: NoPolicies = False,
    vpc_endpoint: Endpoint = False,
    kms_key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write a CDK app in Python: a folder that `cdk deploy` takes, or the app alone if --out ends in .py."""
    with reporting_errors(f"Cannot write a CDK app of {target}."):
        from tavola.iac import cdk_files

        plan = _plan(target, no_alarms, no_policies, vpc_endpoint, kms_key)
        texts = cdk_files(plan)
        if out is None or out.suffix == ".py":
            _give_one("app.py", texts["app.py"], out, force, as_json)
        else:
            _give(texts, out, force, as_json)


@app.add
def policies(
    target: Target,
    role: Annotated[
        str | None,
        Argument(help="The one role that is wanted, whose document is printed alone."),
    ] = None,
    region: Annotated[str, Option("--region", help="The region that the ARNs name.")] = "*",
    account: Annotated[str, Option("--account", help="The account that the ARNs name.")] = "*",
    whole_items: Annotated[
        bool,
        Option("--whole-items", help="Hold nobody to the attributes that a pattern says it reads."),
    ] = False,
    plain_http: Annotated[
        bool,
        Option(
            "--plain-http", help="Leave out that requests in clear are refused, for a server that has no TLS."
        ),
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print all roles as JSON, with their reasons.")] = False,
) -> None:
    """Print what each role may do, from the access patterns: documents that IAM and `tavola iam attach` take."""
    with reporting_errors(f"Cannot write the policies of {target}."):
        from tavola.iac import PlanRefused, derive_policies, render_policy

        for option, text, form, what in (
            ("--region", region, _REGION, "region, such as eu-west-1"),
            ("--account", account, _ACCOUNT, "account, which has 12 digits"),
        ):
            if text != "*" and form.fullmatch(text) is None:
                raise PlanRefused(option, f"{text!r} is no {what}; name one, or leave the option out for any")
        found = derive_policies(
            load_design(target), narrow=False if whole_items else None, tls=not plain_http
        )
        known = [policy.role for policy in found]
        if role is not None and role not in known:
            raise PlanRefused(target, f"there is no role {role}; there are {', '.join(known) or 'none'}")
        documents = {each.role: render_policy(each, region=region, account=account) for each in found}
        for each in found:
            for remark in each.notes if role in (None, each.role) else ():
                note(f"{each.role}: {remark}.")
        if role is not None:
            say(json.dumps(documents[role], indent=2))
        elif as_json:
            roles = [
                {
                    "role": each.role, "kind": each.kind, "description": each.description, "notes": list(each.notes),
                    "document": documents[each.role],
                    "reasons": {grant.sid: list(grant.reasons) for grant in each.grants},
                }
                for each in found
            ]  # fmt: skip
            say_json("tavola.policies/1", {"roles": roles})
        else:
            say(json.dumps(documents, indent=2))


def _plan(target: str, no_alarms: bool, no_policies: bool, endpoint: bool, key: str | None) -> Any:
    from tavola.iac import PlanOptions, plan_infrastructure

    options = PlanOptions(alarms=not no_alarms, policies=not no_policies, endpoint=endpoint, key=key)
    plan = plan_infrastructure(load_design(target), options)
    for remark in plan.notes:
        note(f"{remark}.")
    return plan


def _make_folder(folder: Path) -> Path:
    """Return a folder, which is made if it is not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileRefused(str(folder), error.strerror or str(error), "--out") from error
    return folder


def _give_one(name: str, text: str, out: Path | None, force: bool, as_json: bool) -> None:
    """Print a text, or write it to the one file that is named, beside whatever else is in its folder."""
    if out is None:
        if as_json:
            say_json("tavola.iac/1", {"files": {name: text}})
        else:
            say(text.rstrip("\n"))
        return
    from tavola.iac import WrittenFile, check_overwrite

    _make_folder(out.parent)
    action = check_overwrite(out, text, force=force)
    if action != "unchanged":
        deliver(out, text, "--out")
    _tell([WrittenFile(out, action)], as_json)


def _give(texts: dict[str, str], folder: Path, force: bool, as_json: bool) -> None:
    """Write texts into a folder, and say what became of each."""
    from tavola.iac import write_files

    _tell(write_files(folder, texts, force=force), as_json)


def _tell(done: Sequence[Any], as_json: bool) -> None:
    if as_json:
        say_json(
            "tavola.iac/1", {"written": [{"path": str(each.path), "action": each.outcome} for each in done]}
        )
        return
    for each in done:
        note(f"{each.outcome:<9} {each.path}")
