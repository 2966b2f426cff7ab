# SPDX-License-Identifier: Apache-2.0
"""Addresses of the overview."""

from django.urls import path

from clickos_dashboard.overview import traffic
from clickos_dashboard.overview import views

urlpatterns = [path('', views.IndexView.as_view(), name='index'),
               path('traffic', traffic.answer, name='traffic')]
