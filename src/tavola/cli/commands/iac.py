"""`tavola iac`: generate infrastructure code and IAM policies from a design."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tavola.cli.designs import DesignArgument, load_design
from tavola.cli.errors import CommandError, reporting_errors
from tavola.cli.files import make_folder, write_result
from tavola.cli.output import note, say, say_json, warn
from tavola.cli.parameters import BUNDLE, Argument, AsJson, CommandGroup, Option

if TYPE_CHECKING:
    from tavola.iac import InfrastructurePlan, WrittenFile

app = CommandGroup(
    "iac", help="Generate Terraform, CloudFormation, CDK or IAM policies.", no_args_is_help=True
)

_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]+")
_ACCOUNT = re.compile(r"[0-9]{12}")
_TEMPLATE_BYTES_MAX = 51_200  # of a template that is not deployed from a bucket


@dataclass(frozen=True, slots=True)
class CodeOptions:
    """The options of the commands that generate code."""

    output: Annotated[
        Path | None,
        Option("--output", metavar="FOLDER|FILE", help="Where to write. Default: standard output."),
    ] = None
    force: Annotated[
        bool, Option("--force", help="Overwrite files that Tavola did not write, or that were edited since.")
    ] = False
    no_alarms: Annotated[bool, Option("--no-alarms", help="Leave out the alarms.")] = False
    no_policies: Annotated[bool, Option("--no-policies", help="Leave out the IAM policies.")] = False
    vpc_endpoint: Annotated[
        bool, Option("--vpc-endpoint", help="Add a gateway endpoint with a policy, for private subnets.")
    ] = False
    kms_key: Annotated[
        str | None,
        Option(
            "--kms-key", metavar="new|KEY",
            help="KMS key of tables that declare none: a new one, or an ARN, alias or ID.",
        ),
    ] = None  # fmt: skip
    as_json: AsJson = False

    def plan(self, design: str) -> InfrastructurePlan:
        """Return the infrastructure of a design, and print the notes about it."""
        from tavola.iac import PlanOptions, plan_infrastructure

        options = PlanOptions(
            alarms=not self.no_alarms,
            policies=not self.no_policies,
            endpoint=self.vpc_endpoint,
            key=self.kms_key,
        )
        plan = plan_infrastructure(load_design(design), options)
        for remark in plan.notes:
            warn(f"{remark}.")
        return plan

    def write_file(self, name: str, text: str, path: Path | None) -> None:
        """Write one file to `path`; without a path, print it."""
        if path is None:
            if self.as_json:
                say_json("tavola.iac/1", {"files": {name: text}})
            else:
                say(text.rstrip("\n"))
            return
        from tavola.iac import WrittenFile, check_overwrite

        make_folder(path.parent, "--output")
        action = check_overwrite(path, text, force=self.force)
        if action != "unchanged":
            write_result(path, text, "--output")
        self._report([WrittenFile(path, action)])

    def write_folder(self, files: dict[str, str], folder: Path) -> None:
        """Write files into a folder."""
        from tavola.iac import write_files

        self._report(write_files(folder, files, force=self.force))

    def _report(self, files: Sequence[WrittenFile]) -> None:
        if self.as_json:
            written = [{"path": str(file.path), "action": file.outcome} for file in files]
            say_json("tavola.iac/1", {"written": written})
            return
        for file in files:
            note(f"{file.outcome:<9} {file.path}")


@app.add
def terraform(design: DesignArgument, options: CodeOptions = BUNDLE) -> None:
    """Generate Terraform for the AWS provider.

    Writes a folder of .tf files, or one file if --output ends in .tf.
    """
    with reporting_errors(f"Cannot generate Terraform for {design}."):
        from tavola.iac import index_steps, read_contents, render_terraform, terraform_files

        plan, output = options.plan(design), options.output
        for step in index_steps(plan, None if output is None else read_contents(output)):
            note(f"{step}.")
        if output is None or output.suffix == ".tf":
            options.write_file("main.tf", render_terraform(plan), output)
        else:
            options.write_folder(terraform_files(plan), output)


@app.add
def cloudformation(
    design: DesignArgument,
    form: Annotated[
        Literal["yaml", "json"] | None,
        Option("--format", help="Format. Default: from the name of --output, or yaml."),
    ] = None,
    options: CodeOptions = BUNDLE,
) -> None:
    """Generate a CloudFormation template.

    Writes a file, or template.yaml in a folder.
    """
    with reporting_errors(f"Cannot generate CloudFormation for {design}."):
        from tavola.iac import render_template

        output = options.output
        is_file = output is not None and output.suffix in (".yaml", ".yml", ".json", ".template")
        chosen = form or ("json" if output is not None and output.suffix == ".json" else "yaml")
        plan = options.plan(design)
        if output is not None and not is_file and output.suffix and not output.is_dir():
            raise CommandError(
                f"{output} does not have the suffix of a template.",
                "Use .yaml, .yml, .json or .template, or name a folder with --output.",
            )
        name = f"template.{chosen}"
        path = output if output is None or is_file else make_folder(output, "--output") / name
        text = render_template(plan, chosen)
        options.write_file(name, text, path)
        size = len(text.encode())
        if path is not None and size > _TEMPLATE_BYTES_MAX:
            note(
                f"The template has {size:,} bytes, more than the {_TEMPLATE_BYTES_MAX:,} that CloudFormation accepts directly. "
                "Deploy it with: aws cloudformation deploy --s3-bucket BUCKET"
            )


@app.add
def cdk(design: DesignArgument, options: CodeOptions = BUNDLE) -> None:
    """Generate a CDK app in Python.

    Writes a folder for `cdk deploy`, or only the app if --output ends in .py.
    """
    with reporting_errors(f"Cannot generate a CDK app for {design}."):
        from tavola.iac import cdk_files

        files = cdk_files(options.plan(design))
        if options.output is None or options.output.suffix == ".py":
            options.write_file("app.py", files["app.py"], options.output)
        else:
            options.write_folder(files, options.output)


@app.add
def policies(
    design: DesignArgument,
    role: Annotated[str | None, Argument(help="Print only the policy of this role.")] = None,
    region: Annotated[str, Option("--region", metavar="REGION", help="Region in the ARNs.")] = "*",
    account: Annotated[str, Option("--account", metavar="ID", help="Account in the ARNs.")] = "*",
    whole_items: Annotated[
        bool, Option("--whole-items", help="Do not restrict reads to the attributes that patterns declare.")
    ] = False,
    allow_http: Annotated[
        bool, Option("--allow-http", help="Do not require TLS, for a server without it.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print all roles as JSON, with the reasons.")] = False,
) -> None:
    """Generate IAM policies for the roles of a design.

    The policies are derived from the access patterns; IAM and `tavola iam attach` accept them.
    """
    with reporting_errors(f"Cannot generate the policies of {design}."):
        from tavola.iac import derive_policies, render_policy

        for option, value, pattern, example in (
            ("--region", region, _REGION, "a region such as eu-west-1"),
            ("--account", account, _ACCOUNT, "12 digits"),
        ):
            if value != "*" and pattern.fullmatch(value) is None:
                raise CommandError(
                    f"{option} {value} is not valid.", f"Use {example}, or leave it out for any."
                )
        derived = derive_policies(
            load_design(design), narrow=False if whole_items else None, tls=not allow_http
        )
        roles = [policy.role for policy in derived]
        if role is not None and role not in roles:
            raise CommandError(
                f"The design has no role {role}.", f"Its roles are {', '.join(roles) or 'none'}."
            )
        documents = {policy.role: render_policy(policy, region=region, account=account) for policy in derived}
        for role_policy in derived:
            for remark in role_policy.notes if role in (None, role_policy.role) else ():
                note(f"{role_policy.role}: {remark}.")
        if role is not None:
            say(json.dumps(documents[role], indent=2))
        elif as_json:
            members = [
                {
                    "role": policy.role, "kind": policy.kind, "description": policy.description, "notes": list(policy.notes),
                    "document": documents[policy.role],
                    "reasons": {grant.sid: list(grant.reasons) for grant in policy.grants},
                }
                for policy in derived
            ]  # fmt: skip
            say_json("tavola.policies/1", {"roles": members})
        else:
            say(json.dumps(documents, indent=2))
